#pragma once

#include <cstdint>
#include <vector>

#include "tern/data/dataset.h"
#include "tern/data/image.h"
#include "tern/trainer/application.h"
#include "tern/trainer/report/console.h"
#include "tern/trainer/settings.h"

namespace tern::trainer {

/// --eval-only: how the model of --init or --resume does on the test images.
void evaluate_only(const Application& application, const TrainSettings& settings, LineWriter& out);

/// --predict: prints for each image its most likely classes with their probabilities. Reads all images before the
/// first answer.
void predict(const Application& application, const TrainSettings& settings);

/// Makes a picture of one digit into an example as MNIST was made (LeCun, Bottou, Bengio and Haffner, 1998, III.A):
/// the ink, bright on black whichever way it was written, fitted into 20×20 with its proportions kept, and put into
/// 28×28 with its centre of mass in the middle. A 28×28 picture on black is taken as it is.
std::vector<uint8_t> adapt_digit(const Image& image, const ImageSpec& spec);

/// The middle of a person's photograph, as large a part of it as has the proportions of `spec`, at the size of `spec`.
std::vector<uint8_t> adapt_photo(const Image& image, const ImageSpec& spec);

/// All of it at the size of `spec`, whatever its proportions.
std::vector<uint8_t> squash_photo(const Image& image, const ImageSpec& spec);

}  // namespace tern::trainer
