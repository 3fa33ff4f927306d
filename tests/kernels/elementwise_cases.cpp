#include <limits>
#include "tern/kernels/dropout.h"
#include "tern/kernels/elementwise.h"

#include "tests/kernels/parity_cases.h"

namespace tern::test {
namespace {

const Shape kShapes[] = {{1}, {7}, {3, 33}, {2, 5, 3, 7}, {4, 16, 8, 8}, {1, 3, 1, 1}, {0, 4}, {70000}};

struct BinaryCase {
  Shape a, b;
};
const BinaryCase kBinaryCases[] = {
    {{7}, {7}},
    {{2, 5, 3, 7}, {2, 5, 3, 7}},
    {{4, 33}, {33}},
    {{4, 1}, {33}},
    {{2, 5, 3, 7}, {5, 1, 1}},
    {{5, 3, 7}, {2, 5, 3, 7}},
    {{2, 5, 3, 7}, {2, 1, 3, 1}},
    {{3, 9}, {}},
    {{2, 8, 5, 5}, {1, 8, 1, 1}},
    {{1, 2, 1, 3, 1, 1, 2, 3}, {3, 1, 2, 1, 1, 1, 2, 3}},
};

}  // namespace

void add_elementwise_cases(ParityTable& table) {
  using namespace kernels;
  for (const Shape& shape : kShapes) {
    const std::string name = to_string(shape);
    for (const auto* kernel : {&relu, &sigmoid, &tanh})
      table.push_back({kernel, name, [=](Run& run) { (run)(*kernel, run.input(shape, -4, 4), run.output(shape)); }});
    for (const auto* kernel : {&relu_backward, &sigmoid_backward, &tanh_backward})
      table.push_back({kernel, name, [=](Run& run) {
                         const Tensor y = run.input(shape), dy = run.input(shape);
                         run(*kernel, y, dy, run.output(shape));
                       }});
    table.push_back({&leaky_relu, name, [=](Run& run) { run(leaky_relu, run.input(shape), 0.1, run.output(shape)); }});
    table.push_back({&leaky_relu_backward, name, [=](Run& run) {
                       const Tensor x = run.input(shape), dy = run.input(shape);
                       run(leaky_relu_backward, x, dy, 0.1, run.output(shape));
                     }});
    for (const auto form : {GeluForm::exact, GeluForm::by_tanh}) {
      const std::string form_name = name + (form == GeluForm::exact ? " exact" : " by tanh");
      table.push_back(
          {&gelu, form_name, [=](Run& run) { run(gelu, run.input(shape, -6, 6), form, run.output(shape)); }});
      table.push_back({&gelu_backward, form_name, [=](Run& run) {
                         const Tensor x = run.input(shape, -6, 6), dy = run.input(shape);
                         run(gelu_backward, x, dy, form, run.output(shape));
                       }});
    }
    for (const auto* kernel : {&exp, &abs, &silu})
      table.push_back({kernel, name, [=](Run& run) { run(*kernel, run.input(shape, -4, 4), run.output(shape)); }});
    for (const auto* kernel : {&log, &sqrt})
      table.push_back({kernel, name, [=](Run& run) { run(*kernel, run.input(shape, 0, 3), run.output(shape)); }});
    for (const auto* kernel : {&abs_backward, &silu_backward})
      table.push_back({kernel, name, [=](Run& run) {
                         const Tensor x = run.input(shape, -4, 4), dy = run.input(shape);
                         run(*kernel, x, dy, run.output(shape));
                       }});
    for (const double exponent : {2.0, 0.0, 1.0, -1.5, 3.0, 0.5, -0.5, -1.0, -2.0}) {
      const std::string power = name + join({" to the power of ", exponent});
      table.push_back(
          {&pow, power, [=](Run& run) { run(pow, run.input(shape, 0.5, 2), exponent, run.output(shape)); }});
      table.push_back({&pow_backward, power, [=](Run& run) {
                         const Tensor x = run.input(shape, 0.5, 2), dy = run.input(shape);
                         run(pow_backward, x, dy, exponent, run.output(shape));
                       }});
    }
    table.push_back({&clamp, name, [=](Run& run) { run(clamp, run.input(shape), {-0.3, 0.5}, run.output(shape)); }});
    table.push_back({&clamp_backward, name, [=](Run& run) {
                       const Tensor x = run.input(shape), dy = run.input(shape);
                       run(clamp_backward, x, dy, {-0.3, 0.5}, run.output(shape));
                     }});
    table.push_back({&scale, name, [=](Run& run) { run(scale, run.input(shape), -1.7, run.output(shape)); }});
    table.push_back({&accumulate_nonzero,
                     name,
                     [=](Run& run) {
                       std::vector<float> values = run.input(shape).to(Device{}).to_vector<float>();
                       for (size_t i = 0; i < values.size(); i += 3) values[i] = 0;
                       Tensor& sum = run.changed(run.input(shape).to(DType::f32));
                       Tensor& count = run.changed(run.input(shape).to(DType::f32));
                       run(accumulate_nonzero, Tensor::from(shape, values).to(run.device()), sum, count);
                     },
                     {.bf16 = false, .channels_last = false, .exact = true}});
    table.push_back({&accumulate, name, [=](Run& run) {
                       const Tensor x = run.input(shape);
                       run(accumulate, x, run.changed(run.input(shape)));
                     }});
    if (shape.rank() == 1) continue;
    table.push_back({&dropout, name, [=](Run& run) {
                       const Tensor x = run.input(shape), samples = run.integers({shape[0]}, 1000);
                       const DropoutDraw draw{.seed = 3, .step = 5, .layer = 2, .probability = 0.3};
                       run(dropout, x, samples, draw, run.output(shape));
                     }});
  }
  const float infinity = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> special{nan, infinity, -infinity, 0, -0.0f, 100, -100, 1e-30f, nan};
  for (const auto* kernel : {&relu, &sigmoid, &tanh, &silu, &log, &sqrt, &abs})
    table.push_back({kernel, "NaN, infinities and saturation",
                     [=](Run& run) { run(*kernel, run.given({9}, special), run.output({9})); }});
  for (const auto form : {GeluForm::exact, GeluForm::by_tanh})
    table.push_back({&gelu, "NaN, infinities and saturation",
                     [=](Run& run) { run(gelu, run.given({9}, special), form, run.output({9})); }});
  table.push_back({&relu_backward, "NaN passes the gradient", [=](Run& run) {
                     const Tensor y = run.given({9}, special), dy = run.input({9});
                     run(relu_backward, y, dy, run.output({9}));
                   }});
  for (const double exponent : {0.0, 1.0, 2.0, 3.0, 0.5, -0.5, -1.0, -1.5, -2.0}) {
    const std::vector<float> bases{nan, infinity, -infinity, 0, -0.0f, 1, -1, 0.25f, -3};
    const std::string name = join({"NaN, infinities, zeros and negative numbers to the power of ", exponent});
    table.push_back({&pow, name, [=](Run& run) { run(pow, run.given({9}, bases), exponent, run.output({9})); }});
    table.push_back({&pow_backward, name, [=](Run& run) {
                       const Tensor x = run.given({9}, bases), dy = run.input({9});
                       run(pow_backward, x, dy, exponent, run.output({9}));
                     }});
  }
  table.push_back({&accumulate, "row-major into the format under test", [](Run& run) {
                     const Shape shape{2, 5, 3, 7};
                     const Tensor x = run.input(shape).to(MemoryFormat::row_major);
                     run(accumulate, x, run.changed(run.input(shape)));
                   }});
  for (const auto& [a_shape, b_shape] : kBinaryCases)
    for (const auto* kernel : {&add, &subtract, &multiply, &divide, &maximum, &minimum, &equal})
      table.push_back({kernel, to_string(a_shape) + " and " + to_string(b_shape),
                       [=, a_shape = a_shape, b_shape = b_shape](Run& run) {
                         const Tensor a = run.input(a_shape), b = run.input(b_shape, 0.5, 2);
                         run(*kernel, a, b, run.output(broadcast(a_shape, b_shape, "case")));
                       }});
  for (const auto& [a_shape, b_shape] : kBinaryCases) {
    const Shape shape = broadcast(a_shape, b_shape, "case");
    const std::string name = to_string(a_shape) + " and " + to_string(b_shape);
    table.push_back({&greater_share, name, [=, a_shape = a_shape, b_shape = b_shape](Run& run) {
                       const Tensor a = run.input(a_shape), b = run.input(b_shape), dy = run.input(shape);
                       run(greater_share, a, b, dy, run.output(shape));
                     }});
    table.push_back({&select, name, [=, a_shape = a_shape, b_shape = b_shape](Run& run) {
                       const Tensor a = run.input(a_shape), b = run.input(b_shape), mask = run.mask(shape);
                       run(select, a, b, mask, run.output(shape));
                     }});
    table.push_back(
        {&select, name + ", masked by the second's shape", [=, a_shape = a_shape, b_shape = b_shape](Run& run) {
           const Tensor a = run.input(a_shape), b = run.input(b_shape), mask = run.mask(b_shape);
           run(select, a, b, mask, run.output(shape));
         }});
  }
  const std::vector<float> ties{1, 1, 2, nan, 1, nan, infinity, -infinity, 0},
      beside{1, 2, 1, 1, nan, nan, infinity, infinity, -0.0f};
  for (const auto* kernel : {&maximum, &minimum, &equal})
    table.push_back({kernel, "ties, NaN and infinities", [=](Run& run) {
                       const Tensor a = run.given({9}, ties), b = run.given({9}, beside);
                       run(*kernel, a, b, run.output({9}));
                     }});
  table.push_back({&greater_share, "ties, NaN and infinities", [=](Run& run) {
                     const Tensor a = run.given({9}, ties), b = run.given({9}, beside), dy = run.input({9});
                     run(greater_share, a, b, dy, run.output({9}));
                   }});
  table.push_back(
      {&clamp, "NaN and infinities", [=](Run& run) {
         run(clamp, run.given({9}, special), {-1, std::numeric_limits<double>::infinity()}, run.output({9}));
       }});
  table.push_back({&exp, "NaN, infinities and saturation", [=](Run& run) {
                     run(exp, run.given({7}, {nan, infinity, -infinity, 0, -0.0f, 60, -200}), run.output({7}));
                   }});
  table.push_back({&log,
                   "subnormal and negative numbers",
                   [=](Run& run) {
                     run(log, run.given({4}, {1e-40f, -1e-40f, 3e38f, -2}), run.output({4}));
                   },
                   {.bf16 = false}});
}

}  // namespace tern::test
