// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "fetch/fill.hpp"
#include "store/blob.hpp"

#include <functional>
#include <optional>

namespace weightfs::fetch {

/// A fill that has nothing to do: the blob was there. Immutable, thread-safe.
class CompleteFill final : public Fill {
 public:
  CompleteFill(Target target, store::Blob blob);

  ReadId read(std::uint64_t offset, std::uint64_t size, ReadDone done) override;
  void cancel(ReadId) override {}
  void want(Want) override {}
  void precede(const Precedence&) override {}
  void set_pace(std::shared_ptr<RateLimiter>) override {}
  void on_end(std::function<void()> callback) override { callback(); }
  [[nodiscard]] FillProgress progress() const override;
  [[nodiscard]] const Target& target() const override { return target_; }
  [[nodiscard]] std::optional<Error> error() const override { return std::nullopt; }

 private:
  const Target target_;
  const store::Blob blob_;
};

}  // namespace weightfs::fetch
