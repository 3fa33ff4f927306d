#include "tern/trainer/run/shards.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>
#include <vector>

#include "tern/core/atomic_file.h"
#include "tern/core/error.h"
#include "tern/core/escaped.h"
#include "tern/core/safetensors.h"
#include "tern/dist/comm/in_process.h"
#include "tern/dist/methods/sharded_subnets.h"

namespace tern::trainer {
namespace {

namespace fs = std::filesystem;
using IndexJson = nlohmann::json;

constexpr std::string_view kIndexEnd = ".index.json";

std::string slice_name(const std::string& tensor, int64_t rank) { return fmt::format("{}.slice.{}", tensor, rank); }

/// Parses an index, and throws InputError that names the file and the part that is wrong.
class IndexReader {
 public:
  explicit IndexReader(const fs::path& file) : file_(file.string()) {
    std::ifstream stream(file);
    check_input(stream.good(), file_, ": cannot be read, expected an index of safetensors files");
    json_ = IndexJson::parse(stream, nullptr, false);
    check_input(json_.is_object(), file_, ": found no JSON object, expected an index of safetensors files");
  }

  ShardIndex read() const {
    ShardIndex index;
    const IndexJson &metadata = member(json_, "metadata"), &map = member(json_, "weight_map");
    expect(metadata.is_object(), "metadata", metadata, "an object");
    expect(map.is_object() && !map.empty(), "weight_map", map, "the files of tensors");
    for (const auto& [name, found] : map.items()) {
      expect(found.is_string(), "weight_map '" + name + "'", found, "the name of a file");
      index.files[name] = found.get<std::string>();
    }
    const IndexJson& size = member(metadata, "total_size");
    expect(size.is_null() || size.is_number_unsigned(), "metadata 'total_size'", size, "a number of bytes");
    if (!size.is_null()) index.total_size = size.get<int64_t>();
    const IndexJson& cut = member(metadata, "cut");
    expect(cut.is_null() || cut.is_object(), "metadata 'cut'", cut, "dimensions by tensor");
    for (const auto& [name, dimension] : cut.items()) {
      expect(dimension.is_number_unsigned() && dimension <= 1, "metadata 'cut' '" + name + "'", dimension, "0 or 1");
      index.cut[name] = dimension.get<int64_t>();
    }
    if (cut.empty()) return index;
    const IndexJson& slices = member(metadata, "slices");
    expect(slices.is_number_unsigned() && slices >= 1 && slices <= kMaxRanks, "metadata 'slices'", slices,
           join({"1 to ", kMaxRanks}));
    index.slices = slices.get<int64_t>();
    for (const auto& [name, dimension] : index.cut)
      for (int64_t rank = 0; rank < index.slices; ++rank)
        check_input(index.files.contains(slice_name(name, rank)), file_, ": weight_map: '", slice_name(name, rank),
                    "' not found, expected ", index.slices, " slices of each cut tensor");
    return index;
  }

 private:
  static const IndexJson& member(const IndexJson& json, const char* name) {
    static const IndexJson none;
    const auto found = json.find(name);
    return found == json.end() ? none : *found;
  }
  void expect(bool condition, const std::string& part, const IndexJson& found, const std::string& expected) const {
    if (condition) return;
    const std::string text = found.dump(-1, ' ', false, IndexJson::error_handler_t::replace).substr(0, 80);
    fail_input({file_, ": ", printable(part), ": found ", text, ", expected ", expected});
  }

  std::string file_;
  IndexJson json_;
};

/// "out/model.safetensors" → "model-00002-of-00004.safetensors" for rank 1 of 4.
std::string shard_file(const fs::path& file, int rank, int ranks) {
  return fmt::format("{}-{:05}-of-{:05}{}", file.stem().string(), rank + 1, ranks, file.extension().string());
}

/// Indices [begin, end) of a range's dimension, counted from `origin`.
TensorSlice slice_of(const TensorRange& range, int64_t origin) {
  std::vector<int64_t> indices(static_cast<size_t>(range.end - range.begin));
  std::iota(indices.begin(), indices.end(), range.begin - origin);
  TensorSlice slice;
  (range.dimension == 0 ? slice.rows : slice.columns) = std::move(indices);
  return slice;
}

/// The tensors of one slice after the other, joined along a dimension.
Tensor joined(const std::vector<Tensor>& slices, int dimension) {
  Shape shape = slices.front().shape();
  shape[dimension] = 0;
  for (const Tensor& slice : slices) shape[dimension] += slice.size(dimension);
  const Tensor whole = Tensor::empty(shape);
  int64_t begin = 0;
  for (const Tensor& slice : slices) {
    const int64_t end = begin + slice.size(dimension);
    put(slice, slice_of({dimension, begin, end}, 0), whole);
    begin = end;
  }
  return whole;
}

/// The file that an index names for a tensor that the model has.
const std::string& file_of(const fs::path& file, const ShardIndex& index, const std::string& name, const Shape& shape) {
  const auto in = index.files.find(name);
  check_input(in != index.files.end(), file.string(), ": weight_map: '", name,
              "' not found, expected it: the model has a tensor of shape ", shape);
  return in->second;
}

/// A tensor of a file, or a part of it, and what it goes to.
struct Piece {
  std::string name;  ///< in the file
  Shape shape;       ///< there
  Tensor target;
  TensorSlice from = {}, to = {};  ///< of the file's tensor and of the target
};

/// Reads slices that were written by another number of ranks: of each, the neurons that are now at home here.
void read_other_slices(const fs::path& file, const ShardIndex& index, const std::string& prefix, Module& model,
                       const SubnetCuts& cuts, const Team& team) {
  std::map<std::string, std::vector<Piece>> pieces;  // by file
  const auto add = [&](const Piece& piece) { pieces[file_of(file, index, piece.name, piece.shape)].push_back(piece); };
  std::map<std::string, Shape> whole;
  for (const auto& [name, shape] : model.whole_shapes()) whole.emplace(name, shape);
  const RangeOf mine = home_ranges(cuts, team.rank(), team.size());
  for (const auto& [name, tensor] : model.state()) {
    const auto own = mine(name);
    if (!own) add({.name = prefix + name, .shape = tensor.shape(), .target = tensor});
    for (int source = 0; own && source < index.slices; ++source) {
      const TensorRange its = *home_ranges(cuts, source, static_cast<int>(index.slices))(name);
      const TensorRange both = {own->dimension, std::max(own->begin, its.begin), std::min(own->end, its.end)};
      if (both.begin < both.end)
        add({.name = slice_name(prefix + name, source),
             .shape = its.shape_in(whole.at(name)),
             .target = tensor,
             .from = slice_of(both, its.begin),
             .to = slice_of(both, own->begin)});
    }
  }
  for (const auto& [name, wanted] : pieces) {
    const fs::path path = file.parent_path() / name;
    const StateDict found = read_safetensors(path).tensors;
    for (const Piece& piece : wanted) {
      const Tensor* const value = found.find(piece.name);
      check_input(value != nullptr, path.string(), ": tensor '", piece.name, "' not found, expected it, as in ",
                  file.string());
      check_input(value->dtype() == piece.target.dtype() && value->shape() == piece.shape, path.string(), ": tensor '",
                  piece.name, "' is ", value->dtype(), " ", value->shape(), ", expected ", piece.target.dtype(), " ",
                  piece.shape);
      if (piece.to.rows || piece.to.columns)
        put(take(*value, piece.from), piece.to, piece.target);
      else
        piece.target.copy_from(*value);
    }
  }
}

}  // namespace

StateDict shard_of(Module& model, const SubnetCuts& cuts, int rank) {
  StateDict shard;
  for (const auto& [name, tensor] : model.state())
    shard.add(cuts.find(name) != nullptr ? slice_name(name, rank) : name, tensor);
  return shard;
}

ShardIndex index_of(Module& model, const SubnetCuts& cuts, int ranks,
                    const std::function<std::string(int rank)>& file_of, const std::string& prefix) {
  ShardIndex index;
  index.slices = ranks;
  const StateDict part = model.state();
  for (const auto& [name, whole] : model.whole_shapes()) {
    index.total_size += whole.numel() * static_cast<int64_t>(size_of(part.at(name).dtype()));
    const TensorCut* cut = cuts.find(name);
    if (cut == nullptr) {
      index.files[prefix + name] = file_of(0);
      continue;
    }
    index.cut[prefix + name] = cut->first_axis();
    for (int rank = 0; rank < ranks; ++rank) index.files[slice_name(prefix + name, rank)] = file_of(rank);
  }
  return index;
}

bool is_shard_index(const std::string& file) { return file.ends_with(kIndexEnd); }

void write_shard_index(const fs::path& file, const ShardIndex& index) {
  const IndexJson json = {
      {"metadata", {{"total_size", index.total_size}, {"slices", index.slices}, {"cut", index.cut}}},
      {"weight_map", index.files}};
  const std::string text = json.dump(2, ' ', false, IndexJson::error_handler_t::replace) + "\n";
  AtomicFile written(file);
  written.write(std::as_bytes(std::span(text)));
  written.commit();
}

ShardIndex read_shard_index(const fs::path& file) { return IndexReader(file).read(); }

void write_shards(const fs::path& file, Module& model, const SubnetCuts& cuts, const Team& team) {
  const auto file_of = [&](int rank) { return shard_file(file, rank, team.size()); };
  const fs::path index = file.string() + std::string(kIndexEnd);
  if (team.leads()) fs::remove(index);
  team.barrier();  // no index names files of two models
  StateDict written;
  for (const auto& [name, tensor] : shard_of(model, cuts, team.rank()))
    if (team.leads() || model.state().find(name) == nullptr) written.add(name, tensor);  // only slices get new names
  write_safetensors(file.parent_path() / file_of(team.rank()), written, {{"format", "pt"}});
  team.barrier();  // the index comes last, so that its files are whole
  if (team.leads()) write_shard_index(index, index_of(model, cuts, team.size(), file_of));
}

namespace {

/// Throws InputError if the index has a tensor that the model lacks.
void check_names(const fs::path& file, const ShardIndex& index, const std::string& prefix, Module& model,
                 const SubnetCuts& cuts) {
  std::set<std::string> known;
  for (const auto& [name, shape] : model.whole_shapes())
    if (cuts.find(name) == nullptr)
      known.insert(prefix + name);
    else
      for (int64_t rank = 0; rank < index.slices; ++rank) known.insert(slice_name(prefix + name, rank));
  for (const auto& [name, in] : index.files)
    check_input(!name.starts_with(prefix) || known.contains(name), file.string(), ": weight_map: found '", name,
                "', which the model does not have");
}

}  // namespace

void read_shard(const fs::path& file, Module& model, const SubnetCuts& cuts, const Team& team) {
  const ShardIndex index = read_shard_index(file);
  const bool kept =
      std::ranges::any_of(index.files, [](const auto& entry) { return entry.first.starts_with(kCheckpointedModel); });
  const std::string prefix = kept ? kCheckpointedModel : "";
  check_input(!index.cut.empty(), file.string(),
              ": metadata 'cut': found no slices, expected the index of a model in slices");
  check_names(file, index, prefix, model, cuts);
  if (index.slices != team.size()) return read_other_slices(file, index, prefix, model, cuts, team);
  const StateDict wanted = shard_of(model, cuts, team.rank());
  std::map<std::string, StateDict> places;  // the wanted tensors, by file and by their names there
  for (const auto& [name, tensor] : wanted) {
    places[file_of(file, index, prefix + name, tensor.shape())].add(prefix + name, tensor);
  }
  StateDict found;
  for (const auto& [name, own] : places)
    for (const auto& [tensor, value] : read_safetensors(file.parent_path() / name, own).tensors)
      if (own.find(tensor) != nullptr) found.add(tensor.substr(prefix.size()), value);
  copy_state(found, wanted, "the model");
}

StateDict join_shards(const fs::path& file, const std::string& prefix) {
  const ShardIndex index = read_shard_index(file);
  std::map<std::string, Tensor> found;
  std::set<std::string> files;
  for (const auto& [name, in] : index.files) files.insert(in);
  for (const std::string& name : files)
    for (const auto& [tensor, value] : read_safetensors(file.parent_path() / name).tensors)
      if (const auto entry = index.files.find(tensor); entry != index.files.end() && entry->second == name)
        found[tensor] = value;
  for (const auto& [name, in] : index.files)
    check_input(found.contains(name), (file.parent_path() / in).string(), ": tensor '", name,
                "' not found, expected it, as in ", file.string());
  for (const auto& [name, dimension] : index.cut) {
    std::vector<Tensor> slices;
    for (int64_t rank = 0; rank < index.slices; ++rank)
      slices.push_back(found.extract(slice_name(name, rank)).mapped());
    for (const Tensor& slice : slices) {
      Shape rest = slice.shape(), first = slices.front().shape();
      check_input(slice.dtype() == DType::f32 && slice.rank() == first.rank() && dimension < slice.rank(),
                  file.string(), ": a slice of '", name, "' is ", slice.dtype(), " ", slice.shape(),
                  ", expected f32, with dimension ", dimension, ", as its other slices");
      const auto at = static_cast<int>(dimension);
      rest[at] = first[at] = 0;
      check_input(rest == first, file.string(), ": a slice of '", name, "' is ", slice.shape(),
                  ", expected the shape of the others, ", slices.front().shape(), ", except dimension ", dimension);
    }
    found[name] = joined(slices, static_cast<int>(dimension));
  }
  StateDict whole;
  for (auto& [name, tensor] : found) whole.add(name.starts_with(prefix) ? name.substr(prefix.size()) : name, tensor);
  return whole;
}

}  // namespace tern::trainer
