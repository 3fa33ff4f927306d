#include "tern/networks/lstm.h"

#include "tern/core/edit_distance.h"
#include "tern/networks/ctc_decoding.h"

namespace tern::networks {
namespace {

constexpr auto kBlank = static_cast<int64_t>(An4::kPhones.size());

std::unique_ptr<Module> make_lstm(const ModelSpec& spec) {
  const int64_t hidden = spec.counts.at("hidden"), projection = spec.counts.at("projection");
  check_input(projection < hidden, "--projection: found ", projection, ", expected less than --hidden ", hidden);
  return std::make_unique<SpeechLstm>(SpeechLstm::Options{.in = spec.field("frames").shape[0],
                                                          .hidden = hidden,
                                                          .projection = projection,
                                                          .layers = spec.counts.at("layers")});
}

std::unique_ptr<Task> make_speech_recognition(const TrainSettings& settings) {
  const auto beam = settings.counts.find("beam");
  return std::make_unique<SpeechRecognition>(beam == settings.counts.end() ? 1 : beam->second);
}

std::shared_ptr<const Dataset> load_an4(const TrainSettings& settings, Split split) {
  return std::make_shared<An4>(settings.data_dir, split, settings.counts.at("stride"));
}

}  // namespace

std::vector<DatasetEntry> SpeechRecognition::datasets() const {
  return {{.name = "an4", .needs_folder = true, .load = load_an4, .groups_by_length = true}};
}

Forward SpeechRecognition::loss(SpeechLstm& model, const DeviceBatch& batch) const {
  const Variable logits = model(batch.input("frames"), batch.on_cpu()["frames.lengths"]);
  const Variable log_probabilities = log_softmax(convert(logits, DType::f32));
  const CtcOptions options = {
      .input_lengths = batch["frames.lengths"], .label_lengths = batch["phones.lengths"], .blank = kBlank};
  return {ctc_loss(log_probabilities, batch["phones"], options), {log_probabilities}};
}

std::vector<Ratio> SpeechRecognition::count(std::span<const Tensor> outputs, const Batch& batch) const {
  const Tensor& log_probabilities = outputs[0];  // [T, N, classes]
  const Tensor &phones = batch["phones"], &lengths = batch["phones.lengths"];
  const int64_t classes = log_probabilities.size(2);
  Ratio errors;
  for (int64_t n = 0; n < batch.size(); ++n) {
    const CtcFrames output = {.first = log_probabilities.data<float>() + n * classes,
                              .stride = batch.size() * classes,
                              .frames = batch["frames.lengths"].data<int64_t>()[n],
                              .classes = classes,
                              .blank = kBlank};
    const std::vector<int64_t> heard = beam_ == 1 ? best_path(output) : beam_search(output, beam_);
    const int64_t* first = phones.data<int64_t>() + n * phones.size(1);
    const std::vector<int64_t> said(first, first + lengths.data<int64_t>()[n]);
    errors += {static_cast<double>(edit_distance(heard, said)), static_cast<double>(said.size())};
  }
  return {errors};
}

const Network& lstm() {
  static const Network network = {
      .name = "lstm",
      .model = make_lstm,
      .counts = {{.flag = "hidden", .value = 1024, .help = "Cells of each layer"},
                 {.flag = "projection", .value = 512, .help = "Outputs of each layer, fewer than its cells"},
                 {.flag = "layers", .value = 3, .help = "Layers of LSTM"},
                 {.flag = "stride", .value = 3, .help = "Keep every Nth frame of 10 ms; each is a stack of 11"},
                 {.flag = "beam",
                  .value = 1,
                  .help = "Hypotheses that the beam search keeps, for each score; 1: best path",
                  .changes_training = false}},
      .recipe = {.defaults = {.data = "an4",
                              .epochs = 12,
                              .batch_size = 16,
                              .eval_batch_size = 32,
                              .optimizer = UpdateRule::adam,
                              .lr = 1.5e-3,
                              .lr_schedule = LrSchedule::cosine,
                              .warmup = 0.169,  // without it, three layers find blanks only
                              .clip_norm = 5,
                              .cuda_graph = false}},  // the lengths of the sequences come from the CPU in each step
      .task = make_speech_recognition};
  return network;
}

}  // namespace tern::networks
