#pragma once

namespace tern {

// What a series of a figure is drawn in; bounds and references are grey.

inline constexpr const char *kBlue = "#2563eb", *kOrange = "#ea580c", *kGreen = "#16a34a", *kPurple = "#9333ea",
                            *kTeal = "#0d9488", *kGrey = "#94a3b8";

}  // namespace tern
