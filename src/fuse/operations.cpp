// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#define FUSE_USE_VERSION 317

#include "fuse/operations.hpp"

#include "fuse/errno.hpp"
#include "fuse/request_number.hpp"
#include "vfs/consumer.hpp"

#include <fuse_lowlevel.h>

#include <sys/statvfs.h>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

namespace weightfs::fuse {

namespace {

constexpr double kForeverSeconds = 365.0 * 24 * 3600;
constexpr double kShortSeconds = 1.0;
constexpr std::uint32_t kBlock = 4096;

OperationContext& context_of(fuse_req_t request) {
  return *static_cast<OperationContext*>(fuse_req_userdata(request));
}

double seconds(vfs::Lifetime lifetime) {
  switch (lifetime) {
    case vfs::Lifetime::kNone:
      return 0;
    case vfs::Lifetime::kShort:
      return kShortSeconds;
    case vfs::Lifetime::kForever:
      return kForeverSeconds;
  }
  return 0;
}

// Runs an operation; whatever it throws becomes the reply.
template <class Operation>
void guarded(fuse_req_t request, Call call, const Operation& operation) noexcept {
  try {
    operation(context_of(request));
  } catch (const Error& error) {
    fuse_reply_err(request, to_errno(error.code(), call));
  } catch (...) {
    fuse_reply_err(request, EIO);
  }
}

mode_t mode_of(const vfs::Attributes& attributes) {
  switch (attributes.kind) {
    case vfs::Kind::kDirectory:
      return S_IFDIR | 0555U;
    case vfs::Kind::kFile:
      return attributes.executable ? S_IFREG | 0555U : S_IFREG | 0444U;
    case vfs::Kind::kLink:
      return S_IFLNK | 0777U;
  }
  return 0;
}

struct stat to_stat(const vfs::Attributes& attributes) {
  struct stat result = {};
  const bool directory = attributes.kind == vfs::Kind::kDirectory;
  result.st_ino = attributes.inode;
  result.st_mode = mode_of(attributes);
  result.st_nlink = directory ? 2 : 1;
  result.st_size = static_cast<off_t>(directory ? kBlock : attributes.size);
  result.st_blocks = static_cast<blkcnt_t>((attributes.resident + 511) / 512);
  result.st_blksize = kBlock;
  result.st_mtim.tv_sec = attributes.mtime;
  result.st_ctim = result.st_atim = result.st_mtim;
  return result;
}

fuse_entry_param to_param(const vfs::Entry& entry) {
  fuse_entry_param param = {};
  param.ino = entry.node.value();
  param.attr = to_stat(entry.attributes);
  param.attr_timeout = seconds(entry.attributes_lifetime);
  param.entry_timeout = seconds(entry.name_lifetime);
  return param;
}

void init(void* userdata, fuse_conn_info* connection) noexcept {
  auto& context = *static_cast<OperationContext*>(userdata);
  context.has_passthrough =
      context.want_passthrough && fuse_set_feature_flag(connection, FUSE_CAP_PASSTHROUGH);
  // Blobs lie on plain filesystems; one more layer (overlayfs) is not passed through.
  connection->max_backing_stack_depth = 0;
  fuse_unset_feature_flag(connection,
                          FUSE_CAP_WRITEBACK_CACHE);  // the kernel refuses both together
  // The content of a node never changes; guessing by mtime would cost a GETATTR per read.
  fuse_unset_feature_flag(connection, FUSE_CAP_AUTO_INVAL_DATA);
  fuse_set_feature_flag(connection, FUSE_CAP_EXPLICIT_INVAL_DATA);
  fuse_set_feature_flag(connection, FUSE_CAP_PARALLEL_DIROPS);
  fuse_set_feature_flag(connection, FUSE_CAP_ASYNC_READ);
  fuse_set_feature_flag(connection, FUSE_CAP_DIRECT_IO_ALLOW_MMAP);
  fuse_set_feature_flag(connection, FUSE_CAP_CACHE_SYMLINKS);  // what a link says does not change
  // Measured: no faster than read and write for replies of this size.
  fuse_unset_feature_flag(connection, FUSE_CAP_SPLICE_READ);
  fuse_unset_feature_flag(connection, FUSE_CAP_SPLICE_WRITE);
  fuse_unset_feature_flag(connection, FUSE_CAP_SPLICE_MOVE);
  connection->max_write = kMaxTransfer;
  // Read-ahead counts as background work; above the congestion threshold the kernel skips it.
  connection->max_background = 256;
  connection->congestion_threshold = 192;
}

void lookup(fuse_req_t request, fuse_ino_t parent, const char* name) noexcept {
  guarded(request, Call::kPath, [&](OperationContext& context) {
    if (std::strlen(name) > snapshot::kMaxNameBytes) {
      fuse_reply_err(request, ENAMETOOLONG);
      return;
    }
    const vfs::LookupResult found = context.filesystem.lookup(vfs::NodeId(parent), name);
    if (found.entry) {
      const fuse_entry_param param = to_param(*found.entry);
      fuse_reply_entry(request, &param);
      return;
    }
    if (found.negative == vfs::Lifetime::kNone) {
      fuse_reply_err(request, ENOENT);
      return;
    }
    fuse_entry_param negative = {};  // node 0: there is none, and the kernel may remember that
    negative.entry_timeout = seconds(found.negative);
    fuse_reply_entry(request, &negative);
  });
}

void forget(fuse_req_t request, fuse_ino_t, std::uint64_t) noexcept {
  fuse_reply_none(request);
}

void forget_multi(fuse_req_t request, std::size_t, fuse_forget_data*) noexcept {
  fuse_reply_none(request);
}

void getattr(fuse_req_t request, fuse_ino_t node, fuse_file_info*) noexcept {
  guarded(request, Call::kPath, [&](OperationContext& context) {
    const vfs::Entry entry = context.filesystem.attributes(vfs::NodeId(node));
    const struct stat attributes = to_stat(entry.attributes);
    fuse_reply_attr(request, &attributes, seconds(entry.attributes_lifetime));
  });
}

void readlink(fuse_req_t request, fuse_ino_t node) noexcept {
  guarded(request, Call::kPath, [&](OperationContext& context) {
    fuse_reply_readlink(request, context.filesystem.read_link(vfs::NodeId(node)).c_str());
  });
}

// FUSE_INTERRUPT names a request that may be answered at this moment; only the id is safe to use.
void on_interrupt(fuse_req_t request, void* id) noexcept {
  context_of(request).parked.interrupt(reinterpret_cast<ParkedRequests::Id>(id));
}

ParkedRequests::Id park(fuse_req_t request, OperationContext& context) {
  const ParkedRequests::Id id = context.parked.enter();
  fuse_req_interrupt_func(request, on_interrupt, reinterpret_cast<void*>(id));
  return id;
}

// An OPEN that is on its way to its answer.
struct Opening {
  fuse_req_t request;
  vfs::NodeId node;
  std::uint64_t number;  ///< RequestNumber
  fuse_file_info info;
};

void reply_open(OperationContext& context, Opening opening,
                const vfs::OpenResult& result) noexcept {
  if (result.error) {
    fuse_reply_err(opening.request, to_errno(result.error->code(), Call::kPath));
    return;
  }
  fuse_file_info& info = opening.info;
  try {
    const OpenMode mode = context.modes.open(opening.node, result.blob, opening.number);
    info.fh = mode.handle;
    info.backing_id = mode.backing_id.value_or(0);
    // Pages that must not be used any more have a node of their own (vfs::Incarnations). To have
    // the kernel drop them it would wait, where no signal reaches it, for every page that another
    // reader waits for. (With passthrough it would answer EIO to this.)
    info.keep_cache = mode.backing_id ? 0 : 1;
    info.noflush = 1;
  } catch (const Error& error) {
    context.filesystem.release(opening.node);
    fuse_reply_err(opening.request, error.code() == Errc::kNoSpace ? EMFILE : EIO);
    return;
  }
  if (fuse_reply_open(opening.request, &info) == -ENOENT) {
    // The opener was interrupted, or we are muted: no RELEASE of this handle will follow.
    context.modes.release(opening.node, info.fh);
    context.filesystem.release(opening.node);
  }
}

void open(fuse_req_t request, fuse_ino_t ino, fuse_file_info* info) noexcept {
  guarded(request, Call::kPath, [&](OperationContext& context) {
    const vfs::NodeId node(ino);
    const std::uint64_t number = RequestNumber::original();
    if (RequestNumber::resent()) {
      if (const auto counted = context.modes.take_back(number)) {
        context.filesystem.release(*counted);
      }
    }
    const std::string consumer = vfs::consumer_of(fuse_req_ctx(request)->pid, context.deployment);
    const ParkedRequests::Id id = park(request, context);
    const Opening opening{request, node, number, *info};
    const auto done = [&context, id, opening](const vfs::OpenResult& result) {
      context.parked.leave(id);
      reply_open(context, opening, result);
    };
    try {
      context.parked.set_ticket(id, context.filesystem.open(node, consumer, done));
    } catch (...) {
      context.parked.leave(id);
      throw;
    }
  });
}

void release(fuse_req_t request, fuse_ino_t ino, fuse_file_info* info) noexcept {
  guarded(request, Call::kPath, [&](OperationContext& context) {
    const vfs::NodeId node(ino);
    if (context.modes.release(node, info->fh)) context.filesystem.release(node);
    fuse_reply_err(request, 0);
  });
}

void read(fuse_req_t request, fuse_ino_t node, std::size_t size, off_t offset,
          fuse_file_info*) noexcept {
  guarded(request, Call::kRead, [&](OperationContext& context) {
    const ParkedRequests::Id id = park(request, context);
    const auto done = [request, &context, id](const fetch::ReadResult& result) {
      context.parked.leave(id);
      if (result.error) {
        fuse_reply_err(request, to_errno(result.error->code(), Call::kRead));
      } else {
        fuse_reply_buf(request, reinterpret_cast<const char*>(result.data.data()),
                       result.data.size());
      }
    };
    try {
      context.parked.set_ticket(
          id, context.filesystem.read(vfs::NodeId(node), static_cast<std::uint64_t>(offset), size,
                                      done));
    } catch (...) {
      context.parked.leave(id);
      throw;
    }
  });
}

void opendir(fuse_req_t request, fuse_ino_t node, fuse_file_info* info) noexcept {
  guarded(request, Call::kPath, [&](OperationContext& context) {
    if (context.filesystem.listing_lifetime(vfs::NodeId(node)) == vfs::Lifetime::kForever) {
      info->cache_readdir = info->keep_cache = 1;
    }
    fuse_reply_open(request, info);
  });
}

// Fills one reply with as many entries as fit. `add` puts one entry into the space left and returns
// the space that it needs.
template <class Add>
void list(fuse_req_t request, fuse_ino_t node, std::size_t size, off_t offset,
          const Add& add) noexcept {
  guarded(request, Call::kPath, [&](OperationContext& context) {
    std::vector<char> reply(size);
    std::size_t used = 0;
    const auto put = [&](const char* name, const fuse_entry_param& param, off_t next) {
      const std::size_t needed = add(reply.data() + used, size - used, name, param, next);
      if (needed > size - used) return false;
      used += needed;
      return true;
    };
    // "." and ".." come first, at positions 0 and 1.
    bool space = true;
    for (off_t dot = offset; dot < 2 && space; ++dot) {
      fuse_entry_param self = {};  // node 0: the kernel takes no reference for these
      self.attr = to_stat(context.filesystem.attributes(vfs::NodeId(node)).attributes);
      space = put(dot == 0 ? "." : "..", self, dot + 1);
    }
    if (space) {
      context.filesystem.list(
          vfs::NodeId(node), static_cast<std::uint64_t>(std::max<off_t>(offset, 2) - 2),
          [&](const std::string& name, const vfs::Entry& entry, std::uint64_t next) {
            return put(name.c_str(), to_param(entry), static_cast<off_t>(next + 2));
          });
    }
    fuse_reply_buf(request, reply.data(), used);
  });
}

void readdir(fuse_req_t request, fuse_ino_t node, std::size_t size, off_t offset,
             fuse_file_info*) noexcept {
  list(request, node, size, offset,
       [request](char* space, std::size_t left, const char* name, const fuse_entry_param& param,
                 off_t next) {
         return fuse_add_direntry(request, space, left, name, &param.attr, next);
       });
}

void readdirplus(fuse_req_t request, fuse_ino_t node, std::size_t size, off_t offset,
                 fuse_file_info*) noexcept {
  list(request, node, size, offset,
       [request](char* space, std::size_t left, const char* name, const fuse_entry_param& param,
                 off_t next) {
         return fuse_add_direntry_plus(request, space, left, name, &param, next);
       });
}

void statfs(fuse_req_t request, fuse_ino_t) noexcept {
  guarded(request, Call::kPath, [&](OperationContext& context) {
    const vfs::FilesystemUsage usage = context.filesystem.usage();
    struct statvfs result = {};
    result.f_bsize = result.f_frsize = kBlock;
    result.f_blocks = usage.capacity / kBlock;
    result.f_bfree = result.f_bavail = usage.free / kBlock;
    result.f_files = usage.files;
    result.f_namemax = snapshot::kMaxNameBytes;
    fuse_reply_statfs(request, &result);
  });
}

// Both xattr calls: size 0 asks for the length, too small a buffer is ERANGE (xattr(7)).
void reply_text(fuse_req_t request, const std::string& text, std::size_t size) {
  if (size == 0) {
    fuse_reply_xattr(request, text.size());
  } else if (size < text.size()) {
    fuse_reply_err(request, ERANGE);
  } else {
    fuse_reply_buf(request, text.data(), text.size());
  }
}

void getxattr(fuse_req_t request, fuse_ino_t node, const char* name, std::size_t size) noexcept {
  guarded(request, Call::kPath, [&](OperationContext& context) {
    const auto value = context.filesystem.attribute(vfs::NodeId(node), name);
    if (value) {
      reply_text(request, *value, size);
    } else {
      fuse_reply_err(request, ENODATA);
    }
  });
}

void listxattr(fuse_req_t request, fuse_ino_t node, std::size_t size) noexcept {
  guarded(request, Call::kPath, [&](OperationContext& context) {
    std::string names;
    for (const std::string& name : context.filesystem.attribute_names(vfs::NodeId(node))) {
      names += name;
      names += '\0';
    }
    reply_text(request, names, size);
  });
}

fuse_lowlevel_ops make_operations() noexcept {
  fuse_lowlevel_ops ops = {};
  ops.init = init;
  ops.lookup = lookup;
  ops.forget = forget;
  ops.forget_multi = forget_multi;
  ops.getattr = getattr;
  ops.readlink = readlink;
  ops.open = open;
  ops.release = release;
  ops.read = read;
  ops.opendir = opendir;
  ops.readdir = readdir;
  ops.readdirplus = readdirplus;
  ops.statfs = statfs;
  ops.getxattr = getxattr;
  ops.listxattr = listxattr;
  return ops;
}

}  // namespace

const fuse_lowlevel_ops& operations() noexcept {
  static const fuse_lowlevel_ops ops = make_operations();
  return ops;
}

}  // namespace weightfs::fuse
