#include "tern/data/sample.h"

#include <algorithm>
#include <initializer_list>
#include <set>
#include <span>
#include <utility>

#include "tern/core/error.h"

namespace tern {
namespace {

std::span<const std::byte> elements_of(const Tensor& tensor) {
  return {static_cast<const std::byte*>(tensor.raw_data()), tensor.bytes()};
}

Shape prepend(std::initializer_list<int64_t> first, const Shape& rest) {
  std::vector<int64_t> extents(first);
  extents.insert(extents.end(), rest.begin(), rest.end());
  return Shape(extents);
}

/// Makes the tensors of one batch, field by field. One thread uses it. The threads of a loader call this code, so it
/// uses only calls of Tensor that do not run in parallel.
class Collation {
 public:
  Collation(const std::string& name, const std::vector<int64_t>& indices, const std::vector<Sample>& samples)
      : name_(name), indices_(indices), samples_(samples), n_(std::ssize(samples)) {
    check(indices.size() == samples.size(), "collate: ", indices.size(), " indices for ", samples.size(), " samples");
  }

  void add(const Field& field) {
    switch (field.kind) {
      case FieldKind::dense: return stack(field);
      case FieldKind::sequence: return pad(field);
      case FieldKind::sparse: return join_rows(field);
    }
  }

  Batch finish() {
    for (size_t i = 0; i < samples_.size(); ++i)
      for (const auto& [name, tensor] : samples_[i])
        expect(fields_.contains(name), i, name, "is not among the fields of the data set");
    return {Tensor::from<int64_t>({n_}, indices_), std::move(tensors_)};
  }

 private:
  void stack(const Field& field) {
    const Tensor to = Tensor::empty(prepend({n_}, field.shape), {.dtype = field.dtype});
    auto* at = static_cast<std::byte*>(to.raw_data());
    for (size_t i = 0; i < samples_.size(); ++i) {
      const Tensor& from = tensor_of(i, field.name, field.dtype);
      expect(from.shape() == field.shape, i, field.name, "has shape ", from.shape(), ", expected ", field.shape);
      at = std::ranges::copy(elements_of(from), at).out;
    }
    give(field.name, to);
  }

  void pad(const Field& field) {
    const std::string elements = to_string(field.shape);
    const std::string expected = (field.shape.rank() == 0 ? "[length" : "[length, ") + elements.substr(1);
    const Tensor lengths = Tensor::empty({n_}, {.dtype = DType::i64});
    int64_t longest = 0;
    for (size_t i = 0; i < samples_.size(); ++i) {
      const Shape& shape = tensor_of(i, field.name, field.dtype).shape();
      expect(shape.rank() > 0 && std::equal(shape.begin() + 1, shape.end(), field.shape.begin(), field.shape.end()), i,
             field.name, "has shape ", shape, ", expected ", expected);
      lengths.data<int64_t>()[i] = shape[0];
      longest = std::max(longest, shape[0]);
    }
    const Tensor to = Tensor::empty(prepend({n_, longest}, field.shape), {.dtype = field.dtype});
    auto* at = static_cast<std::byte*>(to.raw_data());
    const size_t row_bytes = samples_.empty() ? 0 : to.bytes() / samples_.size();
    for (const Sample& sample : samples_) {
      auto* const end = at + row_bytes;
      at = std::ranges::copy(elements_of(sample.at(field.name)), at).out;
      std::fill(at, end, std::byte{0});
      at = end;
    }
    give(field.name, to);
    give(field.name + ".lengths", lengths);
  }

  void join_rows(const Field& field) {
    check(field.shape.rank() == 1, "data set '", name_, "': the sparse field '", field.name, "' has shape ",
          field.shape, ", expected [columns]");
    const std::string name_of_values = field.name + ".values";
    fields_.insert(name_of_values);
    const Tensor offsets = Tensor::empty({n_ + 1}, {.dtype = DType::i64});
    int64_t* offset = offsets.data<int64_t>();
    *offset = 0;
    bool any_values = false;
    for (size_t i = 0; i < samples_.size(); ++i) {
      const Tensor& columns = tensor_of(i, field.name, DType::i64);
      expect(columns.rank() == 1, i, field.name, "has shape ", columns.shape(), ", expected [elements]");
      for (const int64_t column : columns.span<int64_t>())
        expect(0 <= column && column < field.shape[0], i, field.name, "has column ", column, ", expected 0 to ",
               field.shape[0] - 1);
      offset[i + 1] = offset[i] + columns.size(0);
      if (!has_tensor(i, name_of_values)) continue;
      const Shape& shape = tensor_of(i, name_of_values, field.dtype).shape();
      expect(shape == columns.shape(), i, name_of_values, "has shape ", shape, ", expected ", columns.shape());
      any_values = true;
    }
    const Tensor indices = Tensor::empty({offset[n_]}, {.dtype = DType::i64});
    const Tensor values = any_values ? Tensor::full({offset[n_]}, 1, {.dtype = field.dtype}) : Tensor();
    for (size_t i = 0; i < samples_.size(); ++i) {
      std::ranges::copy(samples_[i].at(field.name).span<int64_t>(), indices.data<int64_t>() + offset[i]);
      if (has_tensor(i, name_of_values))
        std::ranges::copy(
            elements_of(samples_[i].at(name_of_values)),
            static_cast<std::byte*>(values.raw_data()) + static_cast<size_t>(offset[i]) * size_of(field.dtype));
    }
    give(field.name + ".indices", indices);
    give(field.name + ".offsets", offsets);
    if (any_values) give(name_of_values, values);
  }

  bool has_tensor(size_t i, const std::string& name) const {
    const auto found = samples_[i].find(name);
    return found != samples_[i].end() && found->second.defined();
  }

  const Tensor& tensor_of(size_t i, const std::string& name, DType dtype) {
    fields_.insert(name);
    expect(has_tensor(i, name), i, name, "is missing");
    const Tensor& tensor = samples_[i].at(name);
    expect(tensor.device() == Device{}, i, name, "is on ", tensor.device(), ", expected on ", Device{});
    expect(tensor.dtype() == dtype, i, name, "has elements of ", tensor.dtype(), ", expected ", dtype);
    expect(tensor.format() == MemoryFormat::row_major, i, name, "is ", tensor.format(), ", expected ",
           MemoryFormat::row_major);
    return tensor;
  }

  void give(const std::string& name, const Tensor& tensor) {
    check(tensors_.emplace(name, tensor).second, "data set '", name_, "': two fields give a batch the tensor '", name,
          "', expected one");
  }

  template <class... Parts>
  void expect(bool condition, size_t i, const std::string& field, const Parts&... parts) const {
    check_input(condition, "data set '", name_, "', sample ", indices_[i], ": field '", field, "' ", parts...);
  }

  const std::string& name_;
  const std::vector<int64_t>& indices_;
  const std::vector<Sample>& samples_;
  int64_t n_;
  std::set<std::string, std::less<>> fields_;  ///< the names that a tensor of a sample may have
  NamedTensors tensors_;
};

}  // namespace

const Tensor& Batch::operator[](std::string_view name) const {
  const auto found = tensors_.find(name);
  if (found != tensors_.end()) return found->second;
  std::string names;
  for (const auto& [own, tensor] : tensors_) names += (names.empty() ? "'" : ", '") + own + "'";
  fail({"batch: no tensor '", name, "', it has ", names.empty() ? "none" : names});
}

SparseRows Batch::sparse(const std::string& field) const {
  const std::string values = field + ".values";
  return {.indices = (*this)[field + ".indices"],
          .offsets = (*this)[field + ".offsets"],
          .values = has(values) ? (*this)[values] : Tensor()};
}

Batch collate(const std::string& name, const std::vector<Field>& fields, const std::vector<int64_t>& indices,
              const std::vector<Sample>& samples) {
  Collation collation(name, indices, samples);
  for (const Field& field : fields) collation.add(field);
  return collation.finish();
}

}  // namespace tern
