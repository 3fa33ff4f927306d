#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tern/core/tensor.h"

namespace tern {

/// How the extents of a field differ between samples.
enum class FieldKind : uint8_t {
  dense,     ///< every sample has the field's shape
  sequence,  ///< the first extent differs: frames of an utterance, tokens of a text
  sparse,    ///< a row of a sparse matrix: column indices, and their values unless all values are 1
};

/// The description of one named tensor that every sample of a data set has.
struct Field {
  std::string name;
  DType dtype = DType::f32;
  /// Dense: the shape of the tensor; {} is a single number. Sequence: the shape of one element; the tensor is
  /// [length, shape...]. Sparse: {columns}.
  Shape shape = {};
  FieldKind kind = FieldKind::dense;

  friend bool operator==(const Field&, const Field&) = default;
};

/// Tensors by name.
using NamedTensors = std::map<std::string, Tensor, std::less<>>;

/// One example: a tensor on the CPU for each field, by name. A sparse field "words" gives its column indices, i64 [k]
/// under "words", and may give its values, [k] in the field's dtype under "words.values".
using Sample = NamedTensors;

/// A sparse matrix [N, columns] in compressed sparse rows. Row n has the elements [offsets[n], offsets[n + 1]).
struct SparseRows {
  Tensor indices;  ///< i64 [elements]: the column of each element
  Tensor offsets;  ///< i64 [N + 1]
  Tensor values;   ///< [elements]; undefined if all are 1
};

/// Samples that were collated for a step, all on one device. The names of its tensors:
/// - a dense field "x" is "x", [N, shape...];
/// - a sequence "x" is "x", [N, longest, shape...], with zeros behind the shorter ones, and "x.lengths", i64 [N];
/// - a sparse field "x" is "x.indices", "x.offsets" and, if a sample of the batch has values, "x.values".
/// Pictures are "image", f32 [N, C, h, w], from a loader in channels_last, and "label", i64 [N]. A value; copies share
/// the tensors.
class Batch {
 public:
  Batch() = default;
  /// `indices`, i64 [N]: the samples' indices in the data set. They key each sample's random draws.
  Batch(Tensor indices, NamedTensors tensors) : indices_(std::move(indices)), tensors_(std::move(tensors)) {}

  /// Number of samples.
  int64_t size() const { return indices_.size(0); }
  const Tensor& indices() const { return indices_; }
  /// The tensor with this name. Throws Error, with the names that there are, if there is none.
  const Tensor& operator[](std::string_view name) const;
  bool has(std::string_view name) const { return tensors_.contains(name); }
  /// A sparse field.
  SparseRows sparse(const std::string& field) const;
  const NamedTensors& tensors() const { return tensors_; }

 private:
  Tensor indices_;
  NamedTensors tensors_;
};

/// Stacks, pads or joins samples to a batch on the CPU, as Batch says. `samples[i]` has the index `indices[i]` in the
/// data set `name`. In a batch in which some samples give values of a sparse field, the values of the others are 1.
/// Throws InputError if a field of a sample is missing or has another dtype or shape than `fields` say, if a column of
/// a sparse field is out of range, or if a sample has a tensor that is in no field. The error names the data set, the
/// sample's index and the field.
Batch collate(const std::string& name, const std::vector<Field>& fields, const std::vector<int64_t>& indices,
              const std::vector<Sample>& samples);

}  // namespace tern
