#include "tern/data/npy.h"

#include <gtest/gtest.h>

#include <cstdint>

#include "tern/core/error.h"
#include "tests/data/packed_bytes.h"
#include "tests/support/file_bytes.h"
#include "tests/support/message_of.h"
#include "tests/support/temporary_folder.h"

namespace tern {
namespace {

/// A file of version `major`.0 with this header, padded as NumPy pads it, and these elements.
std::string npy(const std::string& header, const std::string& elements, int major = 1) {
  const size_t length_bytes = major == 1 ? 2 : 4, start = 8 + length_bytes;
  const std::string padding((64 - (start + header.size() + 1) % 64) % 64, ' ');
  const size_t length = header.size() + padding.size() + 1;
  std::string file = {'\x93', 'N', 'U', 'M', 'P', 'Y', static_cast<char>(major), '\0'};
  for (size_t i = 0; i < length_bytes; ++i) file.push_back(static_cast<char>(length >> (8 * i)));
  return file + header + padding + "\n" + elements;
}

std::string npy_header(const std::string& descr, const std::string& shape) {
  return "{'descr': '" + descr + "', 'fortran_order': False, 'shape': " + shape + ", }";
}

template <class T>
std::string bytes_of_values(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

Tensor read_array(const std::string& file) { return read_npy(*open_source("file", {file.begin(), file.end()})); }

template <class T>
void expect_reads(const std::string& descr, const std::vector<T>& values) {
  for (const int major : {1, 2, 3}) {
    const Tensor tensor = read_array(npy(npy_header(descr, "(2, 3)"), bytes_of_values(values), major));
    EXPECT_EQ(tensor.dtype(), dtype_of<T>);
    EXPECT_EQ(tensor.shape(), (Shape{2, 3}));
    EXPECT_EQ(tensor.to_vector<T>(), values);
  }
}

TEST(Npy, ReadsEveryDTypeInEveryVersion) {
  expect_reads<uint8_t>("|u1", {0, 1, 127, 128, 254, 255});
  expect_reads<int64_t>("<i8", {0, 1, -1, INT64_MIN, INT64_MAX, 256});
  expect_reads<float>("<f4", {0, 1, -2.5f, 1e-30f, 3e38f, -0.1f});
  expect_reads<double>("<f8", {0, 1, -2.5, 1e-300, 1e300, -0.1});
}

// The bytes that NumPy writes for np.array([1.5, -2], dtype=np.float32).
TEST(Npy, ReadsWhatNumPyWrites) {
  std::string file("\x93NUMPY\x01\x00v\x00{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", 67);
  file.resize(127, ' ');
  file += "\n";
  file += std::string("\x00\x00\xc0\x3f\x00\x00\x00\xc0", 8);
  const TemporaryFolder folder;
  write_file(folder.path() / "two.npy", file);
  const Tensor tensor = read_npy(folder.path() / "two.npy");
  EXPECT_EQ(tensor.shape(), (Shape{2}));
  EXPECT_EQ(tensor.to_vector<float>(), (std::vector<float>{1.5f, -2}));
}

TEST(Npy, ReadsPackedFilesAndSaysWhatTheyLack) {
  const auto read_packed = [](std::string bytes) {
    return read_npy(*open_source("file", xz(Bytes(bytes.begin(), bytes.end()))));
  };
  const std::string file = npy(npy_header("|u1", "(3,)"), "abc");
  EXPECT_EQ(read_packed(file).to_vector<uint8_t>(), (std::vector<uint8_t>{'a', 'b', 'c'}));
  EXPECT_EQ(message_of<InputError>([&] { read_packed(file.substr(0, file.size() - 1)); }),
            "file: 2 bytes follow the header, expected 3 for [3] of u8");
  EXPECT_EQ(message_of<InputError>([&] { read_packed(file + "d"); }),
            "file: more than 3 bytes follow the header, expected 3 for [3] of u8");
}

TEST(Npy, ReadsAnyOrderAndSpacingOfTheHeader) {
  const Tensor tensor = read_array(npy(R"({"shape":(1,2),"descr":"|u1" , "fortran_order" :False})", "ab"));
  EXPECT_EQ(tensor.shape(), (Shape{1, 2}));
  EXPECT_EQ(tensor.to_vector<uint8_t>(), (std::vector<uint8_t>{'a', 'b'}));
}

TEST(Npy, ReadsEmptyAndDeepArrays) {
  EXPECT_EQ(read_array(npy(npy_header("<f8", "(0, 4)"), "")).shape(), (Shape{0, 4}));
  EXPECT_EQ(read_array(npy(npy_header("|u1", "(1, 1, 2, 1, 1, 1)"), "ab")).shape(), (Shape{1, 1, 2, 1, 1, 1}));
}

struct BadNpy {
  std::string name;
  std::string bytes;
  std::string message;  // the part after the file's name
};

class BadNpys : public testing::TestWithParam<BadNpy> {};

TEST_P(BadNpys, AreInputErrorsThatSayWhatWasFoundAndExpected) {
  EXPECT_EQ(message_of<InputError>([] { read_array(GetParam().bytes); }), "file: " + GetParam().message);
}

const std::string kGoodNpy = npy(npy_header("<f4", "(2, 3)"), std::string(24, 'x'));
const std::string kNumPyDTypes = ", expected '|u1', '<i8', '<f4' or '<f8'";
const std::string kNpyVersion1("\x93NUMPY\x01\x00", 8);

INSTANTIATE_TEST_SUITE_P(
    Files, BadNpys,
    testing::Values(
        BadNpy{"Empty", "", R"(begins with "", expected "\x93NUMPY")"},
        BadNpy{"AnotherFormat", "PK\x03\x04 and more", R"(begins with "PK\x03\x04 a", expected "\x93NUMPY")"},
        BadNpy{"CutInTheVersion", kGoodNpy.substr(0, 7), "truncated: 7 bytes, the version alone ends at 8"},
        BadNpy{"CutInTheLength", kGoodNpy.substr(0, 9), "truncated: 9 bytes, the header begins at 10"},
        BadNpy{"CutInTheHeader", kGoodNpy.substr(0, 60), "truncated: a header of 118 bytes, the file has 50 of them"},
        BadNpy{"CutInTheElements", kGoodNpy.substr(0, kGoodNpy.size() - 1),
               "at most 23 bytes follow the header, expected 24 for [2, 3] of f32"},
        BadNpy{"NoElements", kGoodNpy.substr(0, 128),
               "at most 0 bytes follow the header, expected 24 for [2, 3] of f32"},
        BadNpy{"TrailingByte", kGoodNpy + "x", "more than 24 bytes follow the header, expected 24 for [2, 3] of f32"},
        BadNpy{"Version4", npy(npy_header("|u1", "(1,)"), "x", 4), "offset 6: version 4.0, expected 1.0, 2.0 or 3.0"},
        BadNpy{"Version1Point1", std::string("\x93NUMPY\x01\x01", 8),
               "offset 6: version 1.1, expected 1.0, 2.0 or 3.0"},
        BadNpy{"LongHeader", npy(npy_header("|u1", "(1,)") + std::string(10'000, ' '), "x", 2),
               "a header of 10100 bytes, expected at most 10000"},
        BadNpy{"NoNewline", kNpyVersion1 + std::string("\x02\x00{}", 4),
               "the header does not end with a newline, expected one"},
        BadNpy{"NoHeader", kNpyVersion1 + std::string("\x00\x00", 2),
               "the header does not end with a newline, expected one"},
        BadNpy{"FortranOrder", npy("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }", std::string(24, 'x')),
               "offset 44: the elements are in Fortran order, expected C order"},
        BadNpy{"BigEndian", npy(npy_header(">f4", "(1,)"), "xxxx"),
               "offset 20: elements are '>f4' (big-endian)" + kNumPyDTypes},
        BadNpy{"HalfPrecision", npy(npy_header("<f2", "(1,)"), "xx"), "offset 20: elements are '<f2'" + kNumPyDTypes},
        BadNpy{"Pickle", npy(npy_header("|O", "(1,)"), "\x80\x04."),
               "offset 20: elements are '|O' (Python objects)" + kNumPyDTypes},
        BadNpy{"Records", npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }", "xxxx"),
               R"(the header has "[('a', '<f4')], 'for" at offset 20)" + kNumPyDTypes},
        BadNpy{"ControlBytesInTheDType", npy(npy_header("\x1b[31m", "(1,)"), "x"),
               R"(offset 20: elements are '\x1b[31m')" + kNumPyDTypes},
        BadNpy{"Scalar", npy(npy_header("<f4", "()"), "xxxx"), "0 dimensions, expected 1 to 8"},
        BadNpy{"NineDimensions", npy(npy_header("|u1", "(1, 1, 1, 1, 1, 1, 1, 1, 1)"), "x"),
               "9 dimensions, expected 1 to 8"},
        BadNpy{"NegativeExtent", npy(npy_header("|u1", "(-1,)"), "x"),
               R"(the header has "-1,), }             " at offset 61, expected an extent from 0 to 2^48)"},
        BadNpy{"ExtentBeyond64Bits", npy(npy_header("|u1", "(99999999999999999999,)"), "x"),
               R"(the header has "99999999999999999999" at offset 61, expected an extent from 0 to 2^48)"},
        BadNpy{"ProductOverflows", npy(npy_header("|u1", "(281474976710656, 281474976710656)"), "x"),
               "shape [281474976710656, 281474976710656] has more than 2^48 elements, expected at most that"},
        BadNpy{"ProductOverflowsBehindZero", npy(npy_header("|u1", "(0, 281474976710656, 2)"), ""),
               "shape [0, 281474976710656, 2] has more than 2^48 elements, expected at most that"},
        BadNpy{"LargeShapeInASmallFile", npy(npy_header("<f8", "(281474976710656,)"), "x"),
               "at most 1 bytes follow the header, expected 2251799813685248 for [281474976710656] of f64"},
        BadNpy{"ExtentOfText", npy(npy_header("|u1", "('a',)"), "x"),
               R"(the header has "'a',), }            " at offset 61, expected an extent from 0 to 2^48)"},
        BadNpy{"NoTuple", npy(npy_header("|u1", "3"), "xxx"),
               R"(the header has "3, }                " at offset 60, expected '(')"},
        BadNpy{"NoDictionary", npy("[]", "x"), R"(the header has "[]                  " at offset 10, expected '{')"},
        BadNpy{"OpenDictionary", npy("{'descr': '|u1', ", "x"), "the header has its end at offset 63, expected a key"},
        BadNpy{"OpenText", npy("{'descr", "x"),
               R"(the header has "'descr              " at offset 11, expected text that ends with its quote)"},
        BadNpy{"TextBehindTheDictionary", npy(npy_header("|u1", "(1,)") + "x", "x"),
               R"(the header has "x                   " at offset 67, expected spaces)"},
        BadNpy{"UnknownKey", npy("{'order': 'C'}", "x"),
               R"(the header has "'order': 'C'}       " at offset 11, expected 'descr', 'fortran_order' or 'shape')"},
        BadNpy{"NoBoolean", npy("{'fortran_order': 0}", "x"),
               R"(the header has "0}                  " at offset 28, expected True or False)"},
        BadNpy{"LacksTheShape", npy("{'descr': '|u1', 'fortran_order': False}", "x"),
               "the header lacks 'shape', expected 'descr', 'fortran_order' and 'shape'"}),
    [](const auto& file) { return file.param.name; });

TEST(Npy, RefusesEveryCut) {
  for (size_t size = 0; size < kGoodNpy.size(); ++size)
    EXPECT_NE(message_of<InputError>([&] { read_array(kGoodNpy.substr(0, size)); }), "") << size << " bytes";
}

TEST(Npy, NamesAFileThatCannotBeRead) {
  EXPECT_EQ(message_of<InputError>([] { read_npy("/no/such/file.npy"); }),
            "/no/such/file.npy: cannot be read: No such file or directory");
  EXPECT_NE(message_of<InputError>([] { read_npy("/"); }), "");
}

}  // namespace
}  // namespace tern
