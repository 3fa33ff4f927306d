#include "tern/core/safetensors.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <ctime>
#include <limits>

#include "tern/core/error.h"
#include "tests/support/file_bytes.h"
#include "tests/support/message_of.h"
#include "tests/support/temporary_folder.h"

namespace tern {
namespace {

StateDict one_of_each() {
  StateDict state;
  state.add("labels", Tensor::from<int64_t>({3}, std::vector<int64_t>{-1, 0, INT64_MAX}));
  state.add("pixels", Tensor::from<uint8_t>({3}, std::vector<uint8_t>{0, 7, 255}));
  state.add("weight", Tensor::from<float>({2, 2}, std::vector<float>{1.5f, -0.0f, 1e-42f, 3.4e38f}));
  state.add("half", Tensor::from<BFloat16>({1, 2}, std::vector<BFloat16>{1.0f, -2.5f}));
  state.add("double", Tensor::from<double>({}, std::vector<double>{0.1}));
  state.add("empty", Tensor::empty({0, 5}));
  return state;
}

void expect_same(const StateDict& found, const StateDict& expected) {
  ASSERT_EQ(found.size(), expected.size());
  auto other = expected.begin();
  for (const auto& [name, tensor] : found) {
    EXPECT_EQ(name, other->first);
    EXPECT_EQ(tensor.dtype(), other->second.dtype()) << name;
    ASSERT_EQ(tensor.shape(), other->second.shape()) << name;
    EXPECT_EQ(std::memcmp(tensor.raw_data(), other->second.raw_data(), tensor.bytes()), 0) << name;
    ++other;
  }
}

/// A file without a checksum, as other programs write it.
std::string file_of(const std::string& header, size_t data_bytes) {
  std::string bytes(8, '\0');
  const uint64_t length = header.size();
  std::memcpy(bytes.data(), &length, 8);
  return bytes + header + std::string(data_bytes, '\1');
}

std::string error_of(const std::string& bytes) {
  const TemporaryFolder folder;
  write_file(folder.path() / "f", bytes);
  try {
    read_safetensors(folder.path() / "f");
  } catch (const InputError& error) {
    const std::string prefix = (folder.path() / "f").string() + ": at byte ", message = error.what();
    EXPECT_TRUE(message.starts_with(prefix)) << message;
    return message.substr(std::min(prefix.size(), message.size()));
  }
  return "no error";
}

TEST(Safetensors, KeepsNamesTypesShapesBitsAndMetadata) {
  const TemporaryFolder folder;
  const Metadata metadata = {{"format", "pt"}, {"note", "\"quoted\"\nµ"}};
  const std::string checksum = write_safetensors(folder.path() / "f", one_of_each(), metadata);
  const SafetensorsFile file = read_safetensors(folder.path() / "f");
  expect_same(file.tensors, one_of_each());
  EXPECT_EQ(file.metadata, metadata);
  EXPECT_EQ(file.checksum, checksum);
  EXPECT_EQ(checksum.size(), 8u);
}

TEST(Safetensors, LaysTheDataOutAligned) {
  const TemporaryFolder folder;
  write_safetensors(folder.path() / "f", one_of_each());
  const std::string bytes = read_file(folder.path() / "f");
  uint64_t length;
  std::memcpy(&length, bytes.data(), 8);
  EXPECT_EQ(length % 8, 0u);
  const std::string header = bytes.substr(8, length);
  // 8-byte elements come first, then 4, 2 and 1. The names stay in the given order.
  EXPECT_NE(header.find(R"("labels":{"dtype":"I64","shape":[3],"data_offsets":[0,24]})"), std::string::npos) << header;
  EXPECT_NE(header.find(R"("pixels":{"dtype":"U8","shape":[3],"data_offsets":[52,55]})"), std::string::npos) << header;
  EXPECT_NE(header.find(R"("double":{"dtype":"F64","shape":[],"data_offsets":[24,32]})"), std::string::npos) << header;
}

TEST(Safetensors, WritesChannelsLastAsRowMajor) {
  const TemporaryFolder folder;
  std::vector<float> values(24);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  const Tensor plain = Tensor::from<float>({2, 3, 2, 2}, values);
  StateDict state, expected;
  state.add("w", plain.to(MemoryFormat::channels_last));
  expected.add("w", plain);
  write_safetensors(folder.path() / "f", state);
  expect_same(read_safetensors(folder.path() / "f").tensors, expected);
}

TEST(Safetensors, ReadsOtherWritersFiles) {
  const TemporaryFolder folder;
  write_file(folder.path() / "f", file_of(R"({"b":{"dtype":"U8","shape":[2],"data_offsets":[4,6]},)"
                                          R"("a":{"shape":[1],"dtype":"F32","data_offsets":[0,4]}}  )",
                                          6));
  const SafetensorsFile file = read_safetensors(folder.path() / "f");
  EXPECT_EQ(file.checksum, "");
  EXPECT_EQ(file.tensors.begin()->first, "b");
  EXPECT_EQ(file.tensors.at("b").to_vector<uint8_t>(), (std::vector<uint8_t>{1, 1}));
  EXPECT_EQ(file.tensors.at("a").shape(), Shape{1});
}

TEST(Safetensors, SaysWhatIsWrongAndWhere) {
  const auto tensor = [](const std::string& fields, size_t bytes) {
    return error_of(file_of("{\"t\":{" + fields + "}}", bytes));
  };
  EXPECT_EQ(error_of(""), "0: found 0 bytes, expected the 8 of the header's length");
  EXPECT_EQ(error_of(std::string(8, '\x7f')),
            "0: found a header of 9187201950435737471 bytes, expected at most 100000000; is it a safetensors file?");
  EXPECT_EQ(error_of(file_of("{}", 0).substr(0, 9)), "8: found 1 bytes, expected a header of 2");
  EXPECT_EQ(error_of(file_of("[]", 0)), "8: the header: found [], expected an object");
  EXPECT_TRUE(error_of(file_of("{\"t\":}", 0)).starts_with("13: the header is not JSON: parse error"))
      << error_of(file_of("{\"t\":}", 0));
  EXPECT_EQ(error_of(file_of(std::string(100000, '['), 0)), "8: the header is nested deeper than 3, expected less");
  EXPECT_EQ(error_of(file_of("{\"t\":1e999}", 0)), "8: the header is not JSON: number overflow parsing '1e999'");
  EXPECT_EQ(error_of(file_of(R"({"t":3})", 0)), "9: tensor 't': found 3, expected an object");
  EXPECT_EQ(error_of(file_of(R"({"__metadata__":{"a":1}})", 0)), "9: __metadata__ 'a': found 1, expected a string");
  EXPECT_EQ(tensor(R"("dtype":"F8","shape":[1],"data_offsets":[0,1])", 1),
            "9: tensor 't': dtype: found \"F8\", expected F32, F64, F16, BF16, I64 or U8");
  EXPECT_EQ(tensor(R"("dtype":"U8","shape":[-1],"data_offsets":[0,1])", 1),
            "9: tensor 't': shape: found [-1], expected at most 8 extents");
  EXPECT_EQ(tensor(R"("dtype":"U8","shape":[1,1,1,1,1,1,1,1,1],"data_offsets":[0,1])", 1),
            "9: tensor 't': shape: found [1,1,1,1,1,1,1,1,1], expected at most 8 extents");
  EXPECT_EQ(tensor(R"("dtype":"U8","shape":[4294967296,4294967296,0],"data_offsets":[0,0])", 0),
            "9: tensor 't': shape: found [4294967296,4294967296,0], expected 2^48 elements at most");
  EXPECT_EQ(tensor(R"("dtype":"U8","shape":[1125899906842624],"data_offsets":[0,1])", 1),
            "9: tensor 't': shape: found [1125899906842624], expected 2^48 elements at most");
  EXPECT_EQ(tensor(R"("dtype":"U8","shape":[1],"data_offsets":[0])", 1),
            "9: tensor 't': data_offsets: found [0], expected begin and end");
  EXPECT_EQ(tensor(R"("dtype":"U8","shape":[2],"data_offsets":[0,2])", 1),
            "9: tensor 't': data_offsets: found [0,2], expected a range within the 1 bytes of data in the file");
  EXPECT_EQ(tensor(R"("dtype":"U8","shape":[2],"data_offsets":[2,0])", 2),
            "9: tensor 't': data_offsets: found [2,0], expected a range within the 2 bytes of data in the file");
  EXPECT_EQ(tensor(R"("dtype":"F32","shape":[2],"data_offsets":[0,4])", 4),
            "9: tensor 't': data_offsets: found [0,4], expected 8 bytes for shape [2] of \"F32\"");
  EXPECT_EQ(tensor(R"("dtype":"U8","shape":[2],"data_offsets":[0,2])", 5),
            "63: 3 bytes follow the last tensor, expected none");
  EXPECT_EQ(tensor(R"("dtype":"U8","shape":[2],"data_offsets":[1,3])", 3),
            "9: tensor 't': its data begin at 1, expected 0, the end of the data before it");
  EXPECT_EQ(error_of(file_of(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)"
                             R"("b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})",
                             3)),
            "61: tensor 'b': its data begin at 1, expected 2, the end of the data before it");
}

TEST(Safetensors, RefusesANameThatIsThereTwice) {
  EXPECT_EQ(error_of(file_of(R"({"b":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                             R"("a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]},)"
                             R"("b":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})",
                             2)),
            "9: 'b' is there twice, expected each name once");
}

TEST(Safetensors, KeepsTheOldFileIfANameCannotBeWritten) {
  const TemporaryFolder folder;
  const auto file = folder.path() / "f";
  const Tensor one = Tensor::full({1}, 1);
  write_safetensors(file, one_of_each());
  const std::string old = read_file(file);
  const std::pair<StateDict::Entry, const char*> table[] = {
      {{"__metadata__", one}, "tensor '__metadata__', expected another name: the format keeps this one"},
      {{"a\xff", one}, "tensor 'a\\xff', expected a name in UTF-8"},
      {{"unset", Tensor()}, "tensor 'unset', expected one that is defined"}};
  for (const auto& [entry, message] : table) {
    StateDict state;
    state.add("a\xc3\xa9", one);
    state.add(entry.first, entry.second);
    EXPECT_EQ(message_of<Error>([&, &added = state] { write_safetensors(file, added); }),
              join({"write_safetensors: ", message}));
    EXPECT_EQ(read_file(file), old);
  }
}

/// The processor time in which `count` tensors are written and read. A busy machine does not add to it.
double seconds_for(int64_t count) {
  const TemporaryFolder folder;
  StateDict state;
  for (int64_t i = 0; i < count; ++i) state.add("layer." + std::to_string(i), Tensor::full({}, double(i)));
  const std::clock_t begin = std::clock();
  write_safetensors(folder.path() / "f", state);
  const SafetensorsFile file = read_safetensors(folder.path() / "f");
  const std::clock_t end = std::clock();
  EXPECT_EQ(file.tensors.size(), static_cast<size_t>(count));
  EXPECT_EQ(file.tensors.begin()->first, "layer.0");
  EXPECT_EQ(file.tensors.at("layer.1234").item(), 1234);
  return static_cast<double>(end - begin) / CLOCKS_PER_SEC;
}

// If the code searches for each name, 16 times as many tensors take 256 times as long.
TEST(Safetensors, ReadsAndWritesManyTensorsInLinearTime) {
  const double few = seconds_for(3'000), many = seconds_for(48'000);
  EXPECT_LT(many, 64 * few + 0.1);
}

TEST(Safetensors, NamesAMissingFileAndAFolder) {
  const TemporaryFolder folder;
  for (const auto& path : {folder.path() / "none", folder.path()}) {
    try {
      read_safetensors(path);
      FAIL() << path << " was read";
    } catch (const InputError& error) {
      EXPECT_TRUE(std::string(error.what()).starts_with(path.string() + ": not ")) << error.what();
    }
  }
}

/// Calls `read` with every text that has one corruption of `bytes`: each truncation, each flipped bit, one byte more.
void for_each_corruption(const std::string& bytes, const auto& read) {
  for (size_t length = 0; length < bytes.size(); ++length) read(bytes.substr(0, length));
  for (size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    std::string flipped = bytes;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    read(flipped);
  }
  read(bytes + '\0');
}

TEST(Safetensors, SaysThatContentsDoNotMatchTheChecksum) {
  const TemporaryFolder folder;
  const std::filesystem::path file = folder.path() / "f";
  StateDict state;
  state.add("a", Tensor::from<uint8_t>({1}, std::vector<uint8_t>{9}));
  write_safetensors(file, state);
  std::string bytes = read_file(file);
  const std::string stated = bytes.substr(bytes.find("\"crc32c\":\"") + 10, 8);
  bytes.back() ^= 1;
  write_file(file, bytes);
  const std::string message = message_of<InputError>([&] { read_safetensors(file); });
  EXPECT_TRUE(message.starts_with(file.string() + ": the file's contents do not match its checksum: found "))
      << message;
  EXPECT_TRUE(message.ends_with(", expected " + stated)) << message;
}

TEST(Safetensors, ReadsHalvesAsFloats) {
  const TemporaryFolder folder;
  const std::vector<uint16_t> halves = {0x3c00, 0xc100, 0x0001, 0x83ff, 0x7bff, 0xfc00, 0x8000, 0x7e00};
  std::string bytes = file_of(R"({"h":{"dtype":"F16","shape":[2,4],"data_offsets":[0,16]}})", 16);
  std::memcpy(bytes.data() + bytes.size() - 16, halves.data(), 16);
  write_file(folder.path() / "f", bytes);
  const Tensor h = read_safetensors(folder.path() / "f").tensors.at("h");
  EXPECT_EQ(h.shape(), (Shape{2, 4}));
  const std::vector<float> values = h.to_vector<float>();
  const float expected[] = {1, -2.5f, 0x1p-24f, -0x3ffp-24f, 65504, -std::numeric_limits<float>::infinity(), -0.0f};
  for (size_t i = 0; i < std::size(expected); ++i) EXPECT_EQ(values[i], expected[i]) << i;
  EXPECT_TRUE(std::signbit(values[6]));
  EXPECT_TRUE(std::isnan(values[7]));
  EXPECT_NE(error_of(file_of(R"({"h":{"dtype":"F16","shape":[2],"data_offsets":[0,8]}})", 8))
                .find("expected 4 bytes for shape [2] of \"F16\""),
            std::string::npos);
}

TEST(Safetensors, SaysHowToConvertAFileOfTorchSave) {
  const TemporaryFolder folder;
  const std::string place = (folder.path() / "m.pt").string();
  for (const auto& [start, kind] : {std::pair{std::string("PK\3\4\0\0\x8\x8\0\0", 10), "zip archive"},
                                    {std::string("\x80\2\x8a\nl\xfc\x9c\x46\xf9", 9), "pickle"}}) {
    write_file(place, start + std::string(100, 'x'));
    const std::string message = message_of<InputError>([&] { read_safetensors(place); });
    EXPECT_TRUE(message.starts_with(place + ": a " + kind +
                                    ", as torch.save writes it, expected a safetensors file. Convert it: python3 -c"))
        << message;
    EXPECT_TRUE(message.ends_with(place + " " + (folder.path() / "m.safetensors").string())) << message;
  }
}

TEST(Safetensors, EveryCorruptionOfACheckedFileIsFound) {
  const TemporaryFolder folder;
  StateDict state;
  state.add("b", Tensor::from<float>({2}, std::vector<float>{1, 2}));
  state.add("a", Tensor::from<uint8_t>({1}, std::vector<uint8_t>{9}));
  write_safetensors(folder.path() / "f", state);
  const std::string bytes = read_file(folder.path() / "f");
  for_each_corruption(bytes, [&](const std::string& corrupt) {
    write_file(folder.path() / "f", corrupt);
    try {
      const SafetensorsFile file = read_safetensors(folder.path() / "f");
      // The file can be read only if the corruption hit the checksum's entry. Then the file does not count as checked.
      EXPECT_EQ(file.checksum, "");
      expect_same(file.tensors, state);
    } catch (const InputError&) {
    }
  });
}

TEST(Safetensors, NoCorruptionOfAnUncheckedFileDoesHarm) {
  const TemporaryFolder folder;
  const std::string bytes =
      file_of(R"({"a":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]},"__metadata__":{"k":"v"},)"
              R"("b":{"dtype":"I64","shape":[],"data_offsets":[8,16]}})",
              16);
  int errors = 0;
  for_each_corruption(bytes, [&](const std::string& corrupt) {
    write_file(folder.path() / "f", corrupt);
    try {
      for (const auto& [name, tensor] : read_safetensors(folder.path() / "f").tensors)
        EXPECT_LE(tensor.bytes(), 16u) << name;
    } catch (const InputError&) {
      ++errors;
    }
  });
  EXPECT_GT(errors, static_cast<int>(bytes.size()));  // every truncation, and most flips outside the data
}

}  // namespace
}  // namespace tern
