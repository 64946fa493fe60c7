// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "fetch/shared_partial.hpp"

#include <utility>

namespace weightfs::fetch {

SharedPartial::SharedPartial(std::unique_ptr<store::PartialBlob> blob, Callbacks callbacks)
    : callbacks_(std::move(callbacks)) {
  state_.with([&](State& state) {
    state.open = blob != nullptr;
    state.ended = blob == nullptr;
    state.blob = std::move(blob);
  });
}

std::optional<SharedPartial::Use> SharedPartial::use() {
  return state_.with([&](State& state) -> std::optional<Use> {
    if (state.ended) return std::nullopt;
    ++state.users;
    return Use(*this, *state.blob);
  });
}

void SharedPartial::close(Ending ending, std::string reason, Log log) {
  end([this, ending, reason = std::move(reason), log = std::move(log)](auto blob) {
    try {
      switch (ending) {
        case Ending::kKeep:
          blob->checkpoint();
          break;
        case Ending::kDiscard:
          blob->discard();
          break;
        case Ending::kQuarantine:
          blob->quarantine(reason);
          break;
      }
    } catch (const Error& error) {
      log.warning("{}", error.what());
    }
    blob.reset();
    if (ending != Ending::kKeep) callbacks_.given_back();
    return nullptr;
  });
}

void SharedPartial::commit(Commit commit) {
  end([this, commit = std::move(commit)](auto blob) -> std::function<void()> {
    try {
      std::optional<store::Blob> result;
      commit.write([&] { result = blob->commit(commit.digest, commit.midstates); });
      return [published = commit.published, result = *result] { published(result); };
    } catch (const Error& error) {
      blob->discard();
      callbacks_.given_back();
      return [failed = commit.failed, error] { failed(error); };
    }
  });
}

void SharedPartial::end(Last last) {
  std::unique_ptr<store::PartialBlob> mine;
  state_.with([&](State& state) {
    if (std::exchange(state.ended, true)) return;
    if (state.users == 0) {
      mine = std::move(state.blob);
    } else {
      state.last = std::move(last);
    }
  });
  if (mine) run(std::move(last), std::move(mine));
}

void SharedPartial::leave() {
  std::unique_ptr<store::PartialBlob> mine;
  Last last;
  state_.with([&](State& state) {
    if (--state.users > 0 || !state.ended) return;
    mine = std::move(state.blob);
    last = std::move(state.last);
  });
  if (mine) run(std::move(last), std::move(mine));
}

void SharedPartial::run(Last last, std::unique_ptr<store::PartialBlob> blob) {
  const std::function<void()> then = last(std::move(blob));
  const bool free = state_.with([](State& state) {
    state.open = false;
    return state.released;
  });
  if (free) callbacks_.free();
  if (then) then();
}

void SharedPartial::release() {
  const bool free =
      state_.with([](State& state) { return !std::exchange(state.released, true) && !state.open; });
  if (free) callbacks_.free();
}

}  // namespace weightfs::fetch
