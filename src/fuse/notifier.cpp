// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "fuse/notifier.hpp"

#include <unistd.h>
#include <cstdint>
#include <utility>

namespace weightfs::fuse {

namespace {

// struct fuse_out_header and struct fuse_notify_inval_inode_out of the kernel's
// include/uapi/linux/fuse.h.
struct Message {
  std::uint32_t length = sizeof(Message);
  std::int32_t code = 2;     // FUSE_NOTIFY_INVAL_INODE
  std::uint64_t unique = 0;  // a notification
  std::uint64_t node = 0;
  std::int64_t offset = -1;  // attributes only
  std::int64_t size = 0;
};
static_assert(sizeof(Message) == 40);

}  // namespace

void Notifier::attach(Fd device) {
  auto shared = std::make_shared<const Fd>(std::move(device));
  device_.with([&](auto& current) { current = std::move(shared); });
}

void Notifier::attributes(vfs::NodeId node) {
  const auto device = device_.with([](const auto& current) { return current; });
  if (!device) return;
  Message message;
  message.node = node.value();
  // ENOENT (the kernel does not know the node) is a usual answer, and there is nobody to tell.
  [[maybe_unused]] const auto written = ::write(device->value(), &message, sizeof message);
}

}  // namespace weightfs::fuse
