// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/synchronized.hpp"
#include "fetch/fill.hpp"

#include <functional>
#include <map>
#include <memory>
#include <optional>

namespace weightfs::fetch {

/// A fill of a file that has several sources, for one who holds it: where its bytes turn out to be
/// wrong, and this one has been given none of them, the file is filled anew from another source,
/// and nobody learns of it. Who has bytes that may be wrong learns of it by the error.
///
/// Thread-safe. Ends with its holder; the fills that it goes through are shared with others.
class RetryingFill final : public Fill, public std::enable_shared_from_this<RetryingFill> {
 public:
  /// `make` gives the fill that the target has now, and is called on whatever thread a fill ends
  /// on, with no lock held.
  using Make = std::function<FillPtr()>;
  RetryingFill(FillPtr first, Make make);

  ReadId read(std::uint64_t offset, std::uint64_t size, ReadDone done) override;
  void cancel(ReadId id) override;
  void want(Want want) override;
  void precede(const Precedence& precedence) override;
  void set_pace(std::shared_ptr<RateLimiter> pace) override;
  void on_end(std::function<void()> callback) override;
  [[nodiscard]] FillProgress progress() const override { return current()->progress(); }
  [[nodiscard]] const Target& target() const override { return target_; }
  [[nodiscard]] std::optional<Error> error() const override { return current()->error(); }

 private:
  struct Read {
    FillPtr fill;   ///< where it waits ...
    ReadId id = 0;  ///< ... and as what; 0: not known yet
  };
  struct State {
    FillPtr current;
    bool given = false;  ///< the holder has bytes
    std::map<ReadId, Read> reads;
    ReadId last = 0;
    Want want = Want::kDemand;
    std::optional<Precedence> precedence;
    std::shared_ptr<RateLimiter> pace;
  };
  struct Asked {
    ReadId id = 0;
    std::uint64_t offset = 0;
    std::uint64_t size = 0;
    ReadDone done;
  };

  [[nodiscard]] FillPtr current() const {
    return state_.with([](const State& state) { return state.current; });
  }
  void ask(const Asked& asked);
  void answered(const FillPtr& fill, const Asked& asked, const ReadResult& result);
  [[nodiscard]] bool replace(const Fill* failed, const std::optional<Error>& error);

  const Target target_;
  const Make make_;
  Synchronized<State> state_;
};

}  // namespace weightfs::fetch
