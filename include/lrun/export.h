#pragma once

/// Marks a symbol that liblrun exports; all others are hidden.
#define LRUN_EXPORT __attribute__((visibility("default")))
