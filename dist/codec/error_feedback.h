#pragma once

#include "tern/dist/codec.h"

namespace tern {

/// `error-feedback:CODEC`: what a message leaves out is added to the tensor's next gradient. An unbiased codec is
/// scaled by 1/(1+ω), which the message begins with: then it contracts, and the residual stays bounded. An InputError
/// where the codec has error feedback already.
std::unique_ptr<GradientCodec> with_error_feedback(std::unique_ptr<GradientCodec> codec);
/// The same for a codec that has it built in: its spec stays as it is.
std::unique_ptr<GradientCodec> with_built_in_feedback(std::unique_ptr<GradientCodec> codec);

}  // namespace tern
