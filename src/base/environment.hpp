// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

namespace weightfs {

/// Moves the environment's values to where only this process sees them. What it was started with is
/// in /proc/PID/environ for as long as it lives, as those bytes are in its memory (proc(5)), and so
/// would be a token among them: the names stay there, each with an empty value. getenv(3) finds all
/// values as before, and programs that are started get them.
///
/// To be called once, at the beginning of main: nobody may have kept a pointer into `environ`. The
/// copy lives as long as the process. Throws std::bad_alloc, having changed nothing.
void hide_environment();

}  // namespace weightfs
