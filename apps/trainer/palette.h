#pragma once

namespace tern {

// What a series of a figure is drawn in; bounds and references are grey, what is counted beside them ink.

inline constexpr const char *kBlue = "#2563eb", *kOrange = "#ea580c", *kPaleOrange = "#fdba74", *kGreen = "#16a34a",
                            *kPaleGreen = "#86efac", *kPurple = "#9333ea", *kTeal = "#0d9488", *kGrey = "#94a3b8",
                            *kInk = "#0f172a";

}  // namespace tern
