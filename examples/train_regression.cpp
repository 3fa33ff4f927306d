// Regression on float features from NumPy files:
//
//   np.save("data/train_x.npy", x)    # f4 or f8 [samples, features]
//   np.save("data/train_y.npy", y)    # f4 or f8 [samples, targets]; also test_x.npy and test_y.npy
//   train_regression --data-dir data

#include <tern/tern.h>
#include <tern/trainer/application.h>

#include <cmath>

using namespace tern;

/// A perceptron with one hidden layer.
struct Regressor final : Layer {
  Regressor(int64_t features, int64_t targets, int64_t width)
      : hidden(add<Linear>("hidden", {.in = features, .out = width, .relu = true})),
        out(add<Linear>("out", {.in = width, .out = targets})) {}
  Variable forward(const Variable& x) override { return out(hidden(x)); }

  Linear& hidden;
  Linear& out;
};

struct Regression final : TaskFor<Regressor> {
  std::vector<DatasetEntry> datasets() const override { return {{.name = "npy", .needs_folder = true, .load = load}}; }
  std::vector<Score> scores() const override {
    return {{.name = "absolute error", .unit = "", .higher_is_better = false}};
  }
  Forward loss(Regressor& model, const DeviceBatch& batch) const override {
    const Variable y = model(batch.input("x"));
    const Variable target = batch.input("y", DType::f32);  // not rounded to bf16, as inputs may be
    return {mse(convert(y, DType::f32), target.value()), {y}};
  }
  std::vector<Ratio> count(std::span<const Tensor> outputs, const Batch& batch) const override {
    const auto found = outputs[0].to_vector<double>(), expected = batch["y"].to_vector<double>();
    double sum = 0;
    for (size_t i = 0; i < found.size(); ++i) sum += std::abs(found[i] - expected[i]);
    return {{sum, static_cast<double>(found.size())}};
  }

 private:
  static std::shared_ptr<const Dataset> load(const TrainSettings& settings, Split split) {
    const std::string place = settings.data_dir + (split == Split::train ? "/train_" : "/test_");
    return std::make_shared<TensorDataset>(
        NamedTensors{{"x", read_npy(place + "x.npy")}, {"y", read_npy(place + "y.npy")}});
  }
};

std::unique_ptr<Module> make_regressor(const ModelSpec& spec) {
  const Shape features = spec.field("x").shape, targets = spec.field("y").shape;
  check_input(features.rank() == 1 && targets.rank() == 1, "found samples of shapes ", to_string(features), " and ",
              to_string(targets), ", expected one row of numbers each");
  return std::make_unique<Regressor>(features[0], targets[0], spec.counts.at("hidden"));
}

int main(int argc, char** argv) {
  return train(argc, argv,
               {.name = "train_regression",
                .model = make_regressor,
                .task = make_task<Regression>,
                .defaults = {.epochs = 10, .optimizer = UpdateRule::adam, .lr = 0.01},
                .counts = {{.flag = "hidden", .value = 64, .help = "Neurons between features and targets"}}});
}
