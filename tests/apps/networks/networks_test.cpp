#include <gtest/gtest.h>

#include <cmath>

#include "tern/autograd/functional.h"
#include "tern/core/error.h"
#include "tern/data/whitening.h"
#include "tern/networks/airbench.h"
#include "tern/networks/alexnet.h"
#include "tern/networks/cifarnet.h"
#include "tern/networks/googlenet.h"
#include "tern/networks/lenet.h"
#include "tern/networks/mlp.h"
#include "tern/networks/resnet.h"
#include "tern/networks/vgg.h"
#include "tern/trainer/data/datasets.h"
#include "tern/trainer/data/loaders.h"
#include "tern/trainer/flags/command_line.h"
#include "tests/support/message_of.h"

namespace tern {
namespace {

using namespace trainer;

TEST(LeNet, HasTheParametersOfItsTwoSources) {
  networks::LeNet lenet;
  lenet.initialize(1);
  EXPECT_EQ(lenet.parameter_count(), 1'256'080);
  networks::CaffeLeNet caffe;
  caffe.initialize(1);
  EXPECT_EQ(caffe.parameter_count(), 431'080);
  std::vector<std::string> names;
  for (const auto& [name, parameter] : lenet.parameters()) names.push_back(name);
  EXPECT_EQ(names, (std::vector<std::string>{"conv1.weight", "conv1.bias", "conv2.weight", "conv2.bias", "fc1.weight",
                                             "fc1.bias", "fc2.weight", "fc2.bias"}));
}

TEST(LeNet, GivesTheSameLogitsInBothFormats) {
  networks::LeNet lenet;
  lenet.initialize(1, DType::f64);
  const Tensor x = Tensor::empty({2, 1, 28, 28}, {DType::f64});
  normal(1)(x, RandomStream({.seed = 3}));
  const auto plain = lenet(x).value().to_vector<double>();
  const auto other = lenet(x.to(MemoryFormat::channels_last)).value().to_vector<double>();
  ASSERT_EQ(plain.size(), 20u);
  for (size_t i = 0; i < plain.size(); ++i) EXPECT_NEAR(plain[i], other[i], 1e-12);
}

TEST(LeNet, TrainsOnBfloat16ActivationsBesideF32Parameters) {
  networks::LeNet lenet;
  lenet.initialize(1);
  const Tensor x = Tensor::empty({4, 1, 28, 28}), labels = Tensor::zeros({4}, {DType::i64});
  normal(1)(x, RandomStream({.seed = 3}));
  const auto loss_on = [&](const Tensor& input) {
    lenet.zero_gradients();
    const Variable logits = lenet(input), loss = cross_entropy(logits, labels);
    EXPECT_EQ(logits.value().dtype(), input.dtype());
    EXPECT_EQ(loss.value().dtype(), DType::f32);
    loss.backward();
    for (const auto& [name, parameter] : lenet.parameters())
      EXPECT_EQ(parameter->gradient().dtype(), DType::f32) << name;
    return loss.value().item();
  };
  const double exact = loss_on(x);
  const auto gradient = lenet.fc2.bias->gradient().to_vector<float>();
  EXPECT_NEAR(loss_on(x.to(DType::bf16)), exact, 0.02 * exact);
  const auto rounded = lenet.fc2.bias->gradient().to_vector<float>();
  for (size_t i = 0; i < gradient.size(); ++i) EXPECT_NEAR(rounded[i], gradient[i], 0.02) << "element " << i;
}

TEST(Mlp, HasALayerBetweenEveryTwoWidths) {
  networks::Mlp mlp({.widths = {6, 5, 4}, .norm = networks::MlpNorm::none});
  mlp.initialize(1);
  EXPECT_EQ(mlp.parameter_count(), 6 * 5 + 5 + 5 * 4 + 4);
  EXPECT_EQ(mlp(Tensor::zeros({2, 1, 2, 3})).shape(), (Shape{2, 4}));
}

TEST(Mlp, NormalisesBeforeEachReluWhereAsked) {
  networks::Mlp mlp({.widths = {6, 5, 4}, .norm = networks::MlpNorm::hidden});
  mlp.initialize(1);
  std::vector<std::string> names;
  for (const auto& [name, parameter] : mlp.parameters()) names.push_back(name);
  EXPECT_EQ(names, (std::vector<std::string>{"layers.0.weight", "layers.1.weight", "layers.1.bias", "layers.2.weight",
                                             "layers.2.bias"}));
  const Tensor x = Tensor::empty({8, 1, 2, 3});
  normal(100)(x, RandomStream({.seed = 3}));
  std::vector<float> hidden;
  mlp.layers.modules()[2].module->on_output([&](const Variable& y) { hidden = y.value().to_vector<float>(); });
  mlp(x);
  for (const float value : hidden) EXPECT_TRUE(value >= 0 && value < 3) << value;
}

int64_t parameters_of(Module&& model) { return model.parameter_count(); }

TEST(CifarNet, HasTernGradsParametersAndDecaysTheWeightsOfItsHiddenLayers) {
  networks::CifarNet cifarnet({});
  cifarnet.initialize(1);
  EXPECT_EQ(cifarnet.parameter_count(), 1'068'298);
  std::vector<std::string> decayed;
  for (const auto& [name, parameter] : cifarnet.parameters())
    if (cifarnet.decays(name)) decayed.push_back(name);
  EXPECT_EQ(decayed, (std::vector<std::string>{"fc1.weight", "fc2.weight"}));
}

TEST(CifarNet, TakesImagesOfAnySizeAndColour) {
  networks::CifarNet cifarnet({.channels = 1, .height = 29, .width = 18, .classes = 4});
  cifarnet.initialize(1);
  EXPECT_EQ(cifarnet(Tensor::zeros({2, 1, 29, 18})).shape(), (Shape{2, 4}));
}

TEST(Airbench, TrainsAllButItsWhiteningFilters) {
  networks::Airbench airbench({});
  airbench.initialize(1);
  int64_t trained = 0;
  for (const auto& [name, parameter] : airbench.trained_parameters()) trained += parameter->value().numel();
  EXPECT_EQ(trained, 1'971'352);
  EXPECT_EQ(airbench.parameter_count(), trained + 24 * 3 * 2 * 2);
  EXPECT_EQ(airbench(Tensor::zeros({2, 3, 32, 32})).shape(), (Shape{2, 10}));
  networks::Airbench gray({.channels = 1, .height = 28, .width = 50, .classes = 4});
  gray.initialize(1);
  EXPECT_EQ(gray(Tensor::zeros({2, 1, 28, 50})).shape(), (Shape{2, 4}));
}

TEST(Airbench, StartsWithFiltersThatPassTheInputOnAndAHeadOfDeviationOne) {
  networks::Airbench airbench({});
  airbench.initialize(1);
  const auto filters = airbench.group1.conv1.weight.value().to_vector<float>();  // [64, 24, 3, 3]
  for (int64_t out = 0; out < 64; ++out)
    for (int64_t i = 0; i < 24 * 9; ++i) {
      const float value = filters[static_cast<size_t>(out * 24 * 9 + i)];
      if (out < 24)
        EXPECT_EQ(value, i == out * 9 + 4 ? 1 : 0);
      else
        EXPECT_TRUE(value != 0 && std::abs(value) <= 1 / std::sqrt(24 * 9.0f)) << value;
    }
  double squares = 0;
  const auto head = airbench.head.weight.value().to_vector<double>();
  for (const double value : head) squares += value * value / static_cast<double>(head.size());
  EXPECT_NEAR(squares, 1, 0.01);
}

TEST(Airbench, TakesItsWhiteningFiltersFromTheTrainingImages) {
  const auto& network = networks::airbench();
  TrainSettings settings = network.recipe.defaults;
  settings.augment = network.recipe.augment;
  const auto data = load_split(settings, Split::train);
  networks::Airbench airbench({});
  airbench.initialize(1);
  network.recipe.prepare(airbench, *data, transform_for(settings, *data));
  const auto* images = dynamic_cast<const ImageDataset*>(data.get());
  EXPECT_EQ(airbench.whiten.weight.value().to_vector<float>(),
            whitening_filters(*images, transform_for(settings, *data)).to_vector<float>());
}

TEST(ResNet, HasTheParametersOfItsDepth) {
  using networks::ResNet, networks::Shortcut, networks::Stem;
  EXPECT_EQ(parameters_of(ResNet({.depth = 20})), 269'722);
  EXPECT_EQ(parameters_of(ResNet({.depth = 32})), 464'154);
  EXPECT_EQ(parameters_of(ResNet({.depth = 44})), 658'586);
  EXPECT_EQ(parameters_of(ResNet({.depth = 56})), 853'018);
  EXPECT_EQ(parameters_of(ResNet({.depth = 110})), 1'727'962);
  EXPECT_EQ(parameters_of(ResNet({.depth = 20, .shortcut = Shortcut::projection})), 272'474);
  // Half of the weights of the blocks' convolutions, and half of the first normalisations, are left.
  EXPECT_EQ(parameters_of(ResNet({.depth = 20, .inner_divisor = 2})), 269'722 - 267'264 / 2 - 672 / 2);
  // torchvision has the same counts.
  EXPECT_EQ(parameters_of(ResNet({.depth = 18, .classes = 1000, .stem = Stem::imagenet})), 11'689'512);
  EXPECT_EQ(parameters_of(ResNet({.depth = 50, .classes = 1000, .stem = Stem::imagenet})), 25'557'032);
  EXPECT_EQ(parameters_of(ResNet({.depth = 152, .classes = 1000, .stem = Stem::imagenet})), 60'192'808);
}

TEST(ResNet, RefusesAnInnerDivisorThatDoesNotDivideTheWidth) {
  EXPECT_EQ(message_of<InputError>([] { networks::ResNet resnet({.width = 2, .inner_divisor = 4}); }),
            "ResNet: found inner divisor 4, expected a divisor of the width 2");
}

TEST(ResNet, RefusesADepthThatNobodyBuilt) {
  EXPECT_EQ(message_of<InputError>([] { networks::ResNet resnet({.depth = 34}); }),
            "ResNet: found depth 34, expected 18, 20, 32, 44, 50, 56, 110 or 152");
}

TEST(ResNet, CutsTheInnerChannelsOfItsBlocks) {
  networks::ResNet basic({.depth = 20}), bottleneck({.depth = 50});
  const SubnetPlan plan = basic.subnet_plan(SubnetScope::filters);
  ASSERT_EQ(plan.layers.size(), 9u);
  EXPECT_EQ(plan.layers[3].name, "layer2.0");
  EXPECT_EQ(bottleneck.subnet_plan(SubnetScope::filters).layers.size(), 32u);
  for (networks::ResNet* resnet : {&basic, &bottleneck}) {
    resnet->initialize(1);
    const SubnetCuts cuts(resnet->subnet_plan(SubnetScope::filters), *resnet);
    EXPECT_NE(cuts.find("layer2.0.conv1.weight"), nullptr);
    EXPECT_EQ(cuts.find("layer2.0.downsample.0.weight"), nullptr);
  }
}

TEST(ResNet, PadsItsShortcutsOnEitherSide) {
  networks::ZeroPaddedShortcut shortcut({.channels = 4, .stride = 2});
  const Tensor x = Tensor::from({1, 2, 2, 2}, std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8});
  EXPECT_EQ(shortcut(x).value().to_vector<float>(), (std::vector<float>{0, 1, 5, 0}));
}

TEST(AlexNet, HasTheParametersOfOneTowerOrTwo) {
  EXPECT_EQ(parameters_of(networks::OneTowerAlexNet({.classes = 1000})), 61'100'840);
  EXPECT_EQ(parameters_of(networks::AlexNet({.classes = 1001})), 60'970'697);
}

/// A narrow VGG for images of 32×32.
networks::VggOptions small_vgg(networks::VggDepth depth, networks::VggNorm norm) {
  return {
      .depth = depth, .norm = norm, .height = 32, .width = 32, .classes = 10, .filters = 4, .hidden = 24, .dropout = 0};
}

TEST(Vgg, HasTheParametersOfItsDepth) {
  using networks::Vgg, networks::VggDepth, networks::VggNorm;
  // torchvision's vgg11, vgg16 and vgg19 have the same counts.
  EXPECT_EQ(parameters_of(Vgg({.depth = VggDepth::a})), 132'863'336);
  EXPECT_EQ(parameters_of(Vgg({.depth = VggDepth::sixteen})), 138'357'544);
  EXPECT_EQ(parameters_of(Vgg({.depth = VggDepth::nineteen})), 143'667'240);
  EXPECT_EQ(parameters_of(Vgg({.depth = VggDepth::twelve, .norm = VggNorm::all, .classes = 21'841})), 218'385'728);
}

TEST(Vgg, HasTorchvisionsNames) {
  using networks::VggDepth, networks::VggNorm;
  const auto names_of = [](VggNorm norm) {
    networks::Vgg vgg(small_vgg(VggDepth::a, norm));
    std::vector<std::string> names;
    for (const auto& [name, parameter] : vgg.parameters()) names.push_back(name);
    return names;
  };
  const auto plain = names_of(VggNorm::none), normalised = names_of(VggNorm::convolutions);
  ASSERT_EQ(plain.size(), 22u);
  EXPECT_EQ(plain[2], "features.3.weight");
  EXPECT_EQ(plain[15], "features.18.bias");
  EXPECT_EQ(plain[18], "classifier.3.weight");
  EXPECT_EQ(plain[21], "classifier.6.bias");
  ASSERT_EQ(normalised.size(), 30u);
  EXPECT_EQ(normalised[3], "features.4.weight");
  EXPECT_EQ(normalised[23], "features.26.bias");
}

TEST(Vgg, CutsItsHiddenLayersOrItsFilters) {
  using networks::VggDepth, networks::VggNorm;
  for (const VggNorm norm : {VggNorm::none, VggNorm::convolutions, VggNorm::all}) {
    networks::Vgg vgg(small_vgg(VggDepth::twelve, norm));
    vgg.initialize(1);
    const SubnetCuts hidden(vgg.subnet_plan(SubnetScope::fc), vgg), filters(vgg.subnet_plan(SubnetScope::filters), vgg);
    EXPECT_EQ(hidden.widths(), (std::vector<int64_t>{24, 24}));
    EXPECT_EQ(filters.widths(), (std::vector<int64_t>{4, 8, 8, 16, 16, 32, 32, 32, 32}));
    EXPECT_NE(hidden.find("classifier.0.weight"), nullptr);
    EXPECT_EQ(hidden.find("features.0.weight"), nullptr);
    EXPECT_NE(filters.find("classifier.0.weight"), nullptr);
  }
}

TEST(Vgg, RefusesImagesThatItsPoolingsUseUp) {
  EXPECT_EQ(message_of<InputError>([] { networks::Vgg vgg({.height = 32, .width = 31}); }),
            "VGG: found images of 32x31, expected 32x32 or larger");
}

TEST(GoogLeNet, HasTheParametersOfItsVariant) {
  using networks::GoogLeNet, networks::InceptionVariant;
  EXPECT_EQ(parameters_of(GoogLeNet({})), 6'624'904);  // as torchvision's, without auxiliary classifiers
  // The model of Caffe has a bias at each of its 10,016 convolutions' channels, too: 11,295,240.
  EXPECT_EQ(parameters_of(GoogLeNet({.variant = InceptionVariant::bn_inception})), 11'295'240 - 10'016);
}

TEST(GoogLeNet, HasTorchvisionsNames) {
  networks::GoogLeNet googlenet({});
  std::vector<std::string> names;
  for (const auto& [name, parameter] : googlenet.parameters()) names.push_back(name);
  ASSERT_EQ(names.size(), 3 * 57 + 2u);
  EXPECT_EQ(names[0], "conv1.conv.weight");
  EXPECT_EQ(names[9], "inception3a.branch1.conv.weight");
  EXPECT_EQ(names[13], "inception3a.branch2.0.bn.weight");
  EXPECT_EQ(names[24], "inception3a.branch4.1.conv.weight");
  EXPECT_EQ(names.back(), "fc.bias");
  EXPECT_TRUE(googlenet.decays(names[9]));
  EXPECT_FALSE(googlenet.decays(names[13]));
  EXPECT_FALSE(googlenet.decays(names.back()));
}

TEST(GoogLeNet, TakesImagesWhoseSidesAreOdd) {
  for (const auto variant : {networks::InceptionVariant::googlenet, networks::InceptionVariant::bn_inception}) {
    networks::GoogLeNet model({.variant = variant, .channels = 1, .classes = 4, .dropout = 0});
    model.initialize(1);
    model.begin_step({.samples = Tensor::zeros({2}, {DType::i64})});
    EXPECT_EQ(model(Tensor::full({2, 1, 37, 75}, 0.5)).shape(), (Shape{2, 4}));
  }
}

TEST(ResNet, HasTorchvisionsNamesAndSizes) {
  networks::ResNet resnet({.depth = 18});
  resnet.initialize(1);
  EXPECT_EQ(resnet.parameter_count(), 11'173'962);
  const StateDict state = resnet.state();
  EXPECT_EQ(state.size(), 122u);
  EXPECT_EQ(state.at("layer2.0.downsample.0.weight").shape(), (Shape{128, 64, 1, 1}));
  EXPECT_EQ(state.at("layer4.1.bn2.num_batches_tracked").dtype(), DType::i64);
  EXPECT_EQ(state.find("layer1.0.downsample.0.weight"), nullptr);
}

TEST(Networks, VariantsAreWhatTheirProgramsBuild) {
  struct Row {
    std::string name, command;
    int64_t parameters;
  };
  const Row rows[] = {{"lenet", "train_lenet", 1'256'080},
                      {"mlp", "train_mlp", 407'552},
                      {"mlp4096", "train_mlp --data tones --hidden 4096", 16'928'768},
                      {"mlp3x8192", "train_mlp --data tones --hidden 8192 --layers 3", 100'982'784},
                      {"cifarnet", "train_cifarnet", 1'068'298},
                      {"airbench", "train_airbench", 1'971'640},
                      {"resnet20", "train_resnet --depth 20", 269'722},
                      {"resnet56", "train_resnet --depth 56", 853'018},
                      {"resnet110", "train_resnet --depth 110", 1'727'962},
                      {"resnet18", "train_resnet --depth 18", 11'173'962},
                      {"alexnet", "train_alexnet --towers one", 57'044'810},
                      {"vgg-a", "train_vgg --depth A", 128'810'058},
                      {"vgg12", "train_vgg --depth 12", 128'965'952},
                      {"vgg16", "train_vgg --depth 16", 134'305'738},
                      {"vgg19", "train_vgg --depth 19", 139'611'210},
                      {"googlenet", "train_googlenet", 5'610'154},
                      {"bn-inception", "train_googlenet --dropout 0 --variant bn-inception", 10'270'474}};
  ASSERT_EQ(networks::variants().size(), std::size(rows));
  for (size_t i = 0; i < std::size(rows); ++i) {
    const networks::Variant variant = networks::variants()[i];
    EXPECT_EQ(variant.preset.name, rows[i].name);
    const std::vector<std::string> words = variant.words();
    std::string command;
    std::vector<const char*> arguments;
    for (const std::string& word : words) {
      command += (command.empty() ? "" : " ") + word;
      arguments.push_back(word.c_str());
    }
    EXPECT_EQ(command, rows[i].command);
    const Application application = variant.network.application();
    const TrainSettings given = variant.settings(),
                        read = read_flags(static_cast<int>(words.size()), arguments.data(), application).settings;
    EXPECT_EQ(given.data, read.data) << command;
    EXPECT_EQ(given.choices, read.choices) << command;
    EXPECT_EQ(given.counts, read.counts) << command;
    EXPECT_EQ(given.batch_size, read.batch_size) << command;
    EXPECT_EQ(given.optimizer, read.optimizer) << command;
    EXPECT_EQ(given.ema_decay, read.ema_decay) << command;
    const ImageSpec images = describe_dataset(given).spec;
    const auto model = application.model(
        {.images = training_transform(given, images).output(images), .choices = given.choices, .counts = given.counts});
    EXPECT_EQ(model->parameter_count(), rows[i].parameters) << command;
  }
}

}  // namespace
}  // namespace tern
