#pragma once

namespace tern::cuda {

/// An InputError that names both sides unless this build holds code that the device runs.
void check_architecture(int device);

}  // namespace tern::cuda
