#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>

#include "tern/core/state_dict.h"
#include "tern/dist/methods/subnet_plan.h"
#include "tern/layers/module.h"
#include "tern/trainer/rank/team.h"

// Files of a model that no rank holds whole: one safetensors file for each rank, and an index in the form of
// HuggingFace's model.safetensors.index.json. Rank R's slice of the tensor "fc1.weight" is "fc1.weight.slice.R". The
// index tells the dimension along which slices are joined, and that rank 0's file has the tensors that are not cut.

namespace tern::trainer {

/// A rank's part of the model: its slices, under their names, and the tensors that are not cut. Shares storage with the
/// model, whose neurons are at home.
StateDict shard_of(Module& model, const SubnetCuts& cuts, int rank);

/// What an index file holds: the files of the tensors.
struct ShardIndex {
  std::map<std::string, std::string> files;  ///< by the name of a tensor or slice; relative to the index
  std::map<std::string, int64_t> cut;        ///< dimension along which slices are joined, by the tensor's name
  int64_t slices = 1;                        ///< of each cut tensor
  int64_t total_size = 0;                    ///< bytes of all tensors
};
/// The index of a model whose rank R writes `file_of(R)`. `prefix` stands before the names of tensors in the files.
ShardIndex index_of(Module& model, const SubnetCuts& cuts, int ranks,
                    const std::function<std::string(int rank)>& file_of, const std::string& prefix = {});

/// Before the names of a model's tensors in the files of a checkpoint.
inline constexpr const char* kCheckpointedModel = "model/";

/// Whether a file name is that of an index.
bool is_shard_index(const std::string& file);
void write_shard_index(const std::filesystem::path& file, const ShardIndex& index);
/// Throws InputError that names the file, what was found and what was expected.
ShardIndex read_shard_index(const std::filesystem::path& file);

/// --save FILE: each rank writes FILE's name with "-0000R-of-0000N", and rank 0 then the index FILE.index.json.
void write_shards(const std::filesystem::path& file, Module& model, const SubnetCuts& cuts, const Team& team);
/// Loads the slices of one rank of a sharded model. The index is that of --save or of a checkpoint. If it is of
/// as many ranks, the slices are read straight into the model's memory. Otherwise the rank reads one file after the
/// other. Throws InputError if it is the index of another model.
void read_shard(const std::filesystem::path& index, Module& model, const SubnetCuts& cuts, const Team& team);
/// The whole tensors, without `prefix`.
StateDict join_shards(const std::filesystem::path& index, const std::string& prefix = {});

}  // namespace tern::trainer
