#pragma once

#include <concepts>
#include <string>
#include <vector>

#include "tern/dist/methods/subnet_plan.h"
#include "tern/layers/conv2d.h"
#include "tern/layers/dropout.h"
#include "tern/layers/linear.h"
#include "tern/layers/normalization.h"
#include "tern/layers/pooling.h"
#include "tern/networks/networks.h"

namespace tern::networks {

/// The layers with weights (Simonyan and Zisserman, 2015, table 1): configuration A has 11, D 16 and E 19. IST's paper
/// names VGG12 and does not describe it. Here it is A with a second convolution of 128 channels: A has 8 convolutions,
/// and the next configuration, B, has 10.
enum class VggDepth : uint8_t { a, twelve, sixteen, nineteen };
constexpr Words<4> words_of(VggDepth) { return {"A", "12", "16", "19"}; }

/// The layers with batch normalisation behind them. A layer with one has no bias.
enum class VggNorm : uint8_t {
  none,          ///< as published, and as in QSGD
  convolutions,  ///< TernGrad (Wen et al., 2017, section 4.2)
  all,  ///< convolutions, hidden layers, and the output without weight and bias: IST needs it (section 3.3); see
        ///< MlpNorm
};

struct VggOptions {
  VggDepth depth = VggDepth::a;
  VggNorm norm = VggNorm::none;
  int64_t channels = 3, height = 224, width = 224;  ///< of the images; height and width from 32 on
  int64_t classes = 1000;
  int64_t filters = 64;   ///< of the first convolution; the others have 2, 4 and 8 times as many
  int64_t hidden = 4096;  ///< neurons of each of the two hidden layers
  double dropout = 0.5;   ///< dropout ratio behind each hidden layer
};

/// Layers that run one after another, with the names that torch.nn.Sequential gives them if it has every ReLU as a
/// layer of its own.
class VggLayers : public Layer {
 public:
  Variable forward(const Variable& x) override {
    Variable y = x;
    for (Layer* layer : layers_) y = (*layer)(y);
    return y;
  }

 protected:
  template <std::derived_from<Layer> L>
  std::string append(const typename L::Options& options) {
    const std::string name = std::to_string(next_++);
    layers_.push_back(&add<L>(name, options));
    return name;
  }
  /// Counts the ReLU that the last layer contains.
  void skip_relu() { ++next_; }

 private:
  std::vector<Layer*> layers_;
  int next_ = 0;
};

/// The names of a layer with weights and of its batch normalisation.
struct VggNames {
  std::string weights, norm;  ///< `norm` is empty if there is none
};

/// Five stages of 3×3 convolutions. Max pooling behind each halves height and width.
class VggFeatures final : public VggLayers {
 public:
  using Options = VggOptions;
  explicit VggFeatures(const VggOptions& options);
  const std::vector<VggNames>& convolutions() const { return convolutions_; }
  int64_t filters() const { return filters_; }

 private:
  std::vector<VggNames> convolutions_;
  int64_t filters_;  ///< of the last convolution
};

/// Two hidden layers with dropout, and the output.
class VggClassifier final : public VggLayers {
 public:
  struct Options {
    int64_t in = 1;
    VggOptions network = {};
  };
  explicit VggClassifier(const Options& options);
  /// The hidden layers, then the output.
  const std::vector<VggNames>& linears() const { return linears_; }

 private:
  void append_hidden(int64_t in, const VggOptions& options);
  void append_output(const VggOptions& options);

  std::vector<VggNames> linears_;
};

/// A network of Simonyan and Zisserman ("Very deep convolutional networks", 2015) with torchvision's names and first
/// values; x [N, channels, height, width]. Without normalisation, A, 16 and 19 have 132,863,336, 138,357,544 and
/// 143,667,240 parameters for 1000 classes and images of 224×224. Convolutions start as in He et al. (2015), whose
/// values train 19 layers from the start.
struct Vgg final : Layer, SubnetModel {
  using Options = VggOptions;
  explicit Vgg(const VggOptions& options);
  Variable forward(const Variable& x) override { return classifier(flatten(features(x))); }

  /// The two hidden layers, or the filters of every convolution.
  SubnetPlan subnet_plan(SubnetScope scope) const override;

  const int64_t pixels;  ///< per channel, behind the last pooling
  VggFeatures& features;
  VggClassifier& classifier;
};

/// VGG with the recipe of its authors.
const Network& vgg();

}  // namespace tern::networks
