// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "cache/cache.hpp"

#include <utility>

namespace weightfs::cache {

Cache::Cache(Parts parts, GovernorOptions options, Mode mode, Log log)
    : parts_(std::move(parts)),
      options_(std::move(options)),
      log_(std::move(log)),
      stock_(parts_.store, parts_.observer),
      governor_({.stock = stock_,
                 .catalog = parts_.catalog,
                 .open = open_,
                 .clock = parts_.clock,
                 .events = parts_.events},
                options_, log_),
      mode_(Mode::kOff) {
  set_mode(mode);
}

Cache::ShadowPtr Cache::make_shadow() const {
  return std::make_shared<Shadow>(
      Shadow::Parts{
          .catalog = parts_.catalog, .open = open_, .clock = parts_.clock, .events = parts_.events},
      parts_.store_directories, options_, log_);
}

void Cache::set_mode(Mode mode) {
  if (mode == mode_) return;
  const ShadowPtr next = mode == Mode::kShadow ? make_shadow() : nullptr;
  shadow_.with([&](ShadowPtr& shadow) { shadow = next; });
  governor_.stock_changed();
  mode_ = mode;
}

void Cache::opened(const snapshot::SnapshotPtr& snapshot, std::size_t file_index,
                   const std::string& consumer) {
  open_.opened(snapshot->key());
  if (mode_ == Mode::kProd) governor_.used(snapshot, file_index, consumer);
  if (const ShadowPtr shadow = this->shadow()) shadow->opened(snapshot, file_index, consumer);
}

bool Cache::claim(const fetch::Target& target, const std::function<void()>& take) {
  return mode_ == Mode::kProd && governor_.claim(target, take);
}

void Cache::write_again(const fetch::Target& target, const std::function<void()>& write) {
  if (mode_ != Mode::kProd) return write();  // it began when there was something to evict
  governor_.write_again(target, write);
}

void Cache::streamed(const fetch::Target& target) {
  if (const ShadowPtr shadow = this->shadow()) shadow->fetched(target);
}

void Cache::admit(const snapshot::SnapshotPtr& snapshot) {
  if (mode_ == Mode::kProd) governor_.admit(snapshot);
  if (const ShadowPtr shadow = this->shadow()) shadow->governor().admit(snapshot);
}

void Cache::reserve(const std::vector<snapshot::SnapshotPtr>& snapshots) {
  if (mode_ == Mode::kProd) governor_.reserve(snapshots);
  if (const ShadowPtr shadow = this->shadow()) shadow->governor().reserve(snapshots);
}

void Cache::stock_changed() noexcept {
  if (mode_ == Mode::kProd) governor_.stock_changed();
}

void Cache::keep_limits() {
  if (mode_ == Mode::kProd) governor_.keep_limits();
  if (const ShadowPtr shadow = this->shadow()) shadow->governor().keep_limits();
}

void Cache::set_tenants(const std::vector<Tenant>& tenants) {
  options_.tenants = tenants;
  governor_.set_tenants(tenants);
  if (const ShadowPtr shadow = this->shadow()) shadow->governor().set_tenants(tenants);
}

std::optional<CacheStatus> Cache::status() {
  if (mode_ == Mode::kProd) return CacheStatus{.governor = governor_.status(), .shadow = {}};
  if (const ShadowPtr shadow = this->shadow()) {
    return CacheStatus{.governor = shadow->governor().status(), .shadow = shadow->counts()};
  }
  return std::nullopt;
}

}  // namespace weightfs::cache
