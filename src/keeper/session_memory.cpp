// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "keeper/session_memory.hpp"

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/synchronized.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <type_traits>
#include <unordered_map>
#include <utility>

// What a kill -9 can leave behind, and why each is harmless:
//   - a log record without its length published: the next append overwrites it;
//   - a part of a log in the area that is not in use: the next compaction overwrites it; until
//     then, as when the area that has just been left was not given back, it costs memory only;
//   - a slot counted as touched, or filled in, but without a node id: it is still free;
//   - a FUSE_INIT half written: the state says kNone, as before it was read.
// The processor retires a thread's stores in program order before the kill takes effect, so only
// the compiler has to be kept from reordering them; the atomics and the signal fence do that.

namespace weightfs::keeper {

namespace {

constexpr std::uint64_t kMagic = 0x314d'454d'5346'5757ULL;  // "WWFSMEM1"
constexpr std::uint32_t kVersion = 3;
constexpr std::size_t kMaxInit = 1 << 10;
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
constexpr std::uint64_t kFree = 0;  // no node id is 0 (FUSE_ROOT_ID is 1)
constexpr std::uint64_t kSecondArea = 1ULL << 63;
constexpr std::uint64_t kSmallLog = 1 << 20;  // not worth compacting before it has grown by this

struct Header {
  std::uint64_t magic;
  std::uint32_t version;
  std::uint32_t init_state;
  std::uint64_t log_end;  // bytes in the log; kSecondArea is set where that is in the second area
  std::uint32_t init_size;
  std::uint32_t
      slots_touched;  // slots from here on were never used; reading them would cost memory
  std::byte init[kMaxInit];
  std::uint32_t note;
};

struct Slot {
  std::uint64_t node_id;  // kFree, or what the other fields belong to: stored last
  std::uint64_t request;
  std::int32_t backing_id;
  std::uint32_t generation;  // goes up with each use, so that an old handle does not fit
};

constexpr std::size_t kHeaderBytes = 4096;
constexpr std::size_t kSlotBytes = SessionMemory::kMaxOpens * sizeof(Slot);
constexpr std::size_t kTotalBytes = kHeaderBytes + kSlotBytes + 2 * SessionMemory::kLogBytes;
static_assert(sizeof(Header) <= kHeaderBytes && std::is_trivially_copyable_v<Header>);
static_assert(std::atomic_ref<std::uint64_t>::is_always_lock_free);

template <class T>
T load(const T& shared) {
  return std::atomic_ref<T>(const_cast<T&>(shared)).load();
}

template <class T>
void publish(T& shared, std::type_identity_t<T> value) {
  std::atomic_ref<T>(shared).store(value);
}

std::uint64_t to_handle(std::uint32_t slot, std::uint32_t generation) {
  return std::uint64_t{generation} << 32 | slot;
}

[[noreturn]] void corrupt(const std::string& what) {
  throw Error(Errc::kCorrupt, "the session memory is damaged: " + what);
}

}  // namespace

class SessionMemory::State {
 public:
  /// The nodes that have slots, and which of the touched slots are free. Rebuilt from the slots at
  /// start, so that no hash table has to survive a kill.
  struct Index {
    std::unordered_map<std::uint64_t, Backing> nodes;
    std::vector<std::uint32_t> free;
    std::uint64_t kept = 0;  ///< bytes of the log after the last compaction, or when it was mapped
  };
  struct Log {
    std::byte* begin = nullptr;
    std::uint64_t size = 0;
    std::uint64_t area = 0;  ///< 0 or kSecondArea
  };

  explicit State(const Fd& memory) {
    struct stat status{};
    if (::fstat(memory.value(), &status) != 0) throw_errno(errno, "stat the session memory");
    check_version(memory);
    if (status.st_size != static_cast<off_t>(kTotalBytes)) corrupt("wrong size");
    if ((::fcntl(memory.value(), F_GET_SEALS) & kSeals) != kSeals) corrupt("it is not sealed");
    void* base = ::mmap(nullptr, kTotalBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE,
                        memory.value(), 0);
    if (base == MAP_FAILED) throw_errno(errno, "map the session memory");
    base_ = static_cast<std::byte*>(base);
    try {
      check();
    } catch (...) {
      ::munmap(base_, kTotalBytes);
      throw;
    }
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() { ::munmap(base_, kTotalBytes); }

  [[nodiscard]] Header& header() const { return *reinterpret_cast<Header*>(base_); }
  [[nodiscard]] std::span<Slot> slots() const {
    return {reinterpret_cast<Slot*>(base_ + kHeaderBytes), kMaxOpens};
  }
  [[nodiscard]] std::byte* area(std::uint64_t which) const {
    return base_ + kHeaderBytes + kSlotBytes + (which == kSecondArea ? kLogBytes : 0);
  }
  [[nodiscard]] Log log() const {
    const std::uint64_t end = load(header().log_end);
    return {
        .begin = area(end & kSecondArea), .size = end & ~kSecondArea, .area = end & kSecondArea};
  }

  /// Writes a record that does not count yet; returns where the next one goes.
  static std::uint64_t write_record(std::byte* log, std::uint64_t at, std::string_view record) {
    const auto length = static_cast<std::uint32_t>(record.size());
    std::memcpy(log + at, &length, sizeof length);
    std::memcpy(log + at + sizeof length, record.data(), length);
    return at + sizeof length + length;
  }

  /// Calls `visit(text)` for each published record.
  template <class Visit>
  void each_record(Visit visit) const {
    const auto [begin, size, area] = log();
    if (size > kLogBytes) corrupt("the log is longer than its room");
    for (std::uint64_t at = 0; at < size;) {
      std::uint32_t length = 0;
      if (size - at < sizeof length) corrupt("the log ends inside a record");
      std::memcpy(&length, begin + at, sizeof length);
      at += sizeof length;
      if (length > SessionMemory::kMaxRecord || size - at < length)
        corrupt("a record is longer than the log");
      visit(std::string_view(reinterpret_cast<const char*>(begin + at), length));
      at += length;
    }
  }

  /// Counts one more open; false if the node has another backing id.
  static bool count(Index& index, std::uint64_t node_id, std::int32_t backing_id) {
    const auto [known, added] = index.nodes.try_emplace(node_id, Backing{node_id, backing_id, 0});
    if (known->second.backing_id != backing_id) return false;
    ++known->second.opens;
    return true;
  }

  /// Calls `visit(number, slot)` for each slot that was ever used.
  template <class Visit>
  void each_touched(Visit visit) const {
    const std::uint32_t touched = load(header().slots_touched);
    if (touched > kMaxOpens) corrupt("more open files than there is room for");
    for (std::uint32_t at = 0; at < touched; ++at) visit(at, slots()[at]);
  }

  /// Also serialises every writer of the mapped memory.
  Synchronized<Index> index;

 private:
  // Before the size, which is another in another version.
  static void check_version(const Fd& memory) {
    Header header{};
    const auto bytes = std::as_writable_bytes(std::span(&header, 1));
    if (read_at(memory, 0, bytes) < bytes.size()) corrupt("wrong size");
    if (header.magic != kMagic) corrupt("wrong magic");
    if (header.version != kVersion) {
      throw Error(Errc::kUnsupported, "the session memory has version " +
                                          std::to_string(header.version) + ", this program knows " +
                                          std::to_string(kVersion));
    }
  }

  void check() {
    if (load(header().init_state) > static_cast<std::uint32_t>(InitState::kDone) ||
        header().init_size > kMaxInit) {
      corrupt("the saved FUSE_INIT makes no sense");
    }
    each_record([](std::string_view) {});
    auto table = index.lock();
    table->kept = log().size;
    each_touched([&](std::uint32_t at, const Slot& slot) {
      const std::uint64_t node_id = load(slot.node_id);
      if (node_id == kFree) {
        table->free.push_back(at);
        return;
      }
      const std::int32_t backing_id = load(slot.backing_id);
      if (backing_id <= 0 && backing_id != kCached) corrupt("an open file makes no sense");
      if (!count(*table, node_id, backing_id)) corrupt("a node has two backing ids");
    });
  }

  std::byte* base_ = nullptr;
};

Fd SessionMemory::create() {
  Fd memory(::memfd_create("weightfs-session", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!memory) throw_errno(errno, "create the session memory");
  if (::ftruncate(memory.value(), static_cast<off_t>(kTotalBytes)) != 0 ||
      ::fcntl(memory.value(), F_ADD_SEALS, kSeals) != 0) {
    throw_errno(errno, "size the session memory");
  }
  Header header{};
  header.magic = kMagic;
  header.version = kVersion;
  write_at(memory, 0, std::as_bytes(std::span(&header, 1)));
  return memory;
}

SessionMemory::SessionMemory(const Fd& memory) : state_(std::make_unique<State>(memory)) {
}
SessionMemory::~SessionMemory() = default;

std::uint32_t SessionMemory::note() const {
  return load(state_->header().note);
}

void SessionMemory::set_note(std::uint32_t note) {
  publish(state_->header().note, note);
}

SessionMemory::InitState SessionMemory::init_state() const {
  return static_cast<InitState>(load(state_->header().init_state));
}

void SessionMemory::save_init(std::span<const std::byte> request) {
  if (request.empty() || request.size() > kMaxInit) {
    throw Error(Errc::kInvalid, "a FUSE_INIT of " + std::to_string(request.size()) + " bytes");
  }
  auto writers = state_->index.lock();
  if (init_state() == InitState::kDone) {
    throw Error(Errc::kInternal, "the kernel sent FUSE_INIT twice");
  }
  Header& header = state_->header();
  publish(header.init_state, static_cast<std::uint32_t>(InitState::kNone));
  std::atomic_signal_fence(std::memory_order_seq_cst);
  std::memcpy(header.init, request.data(), request.size());
  header.init_size = static_cast<std::uint32_t>(request.size());
  publish(header.init_state, static_cast<std::uint32_t>(InitState::kPending));
}

void SessionMemory::mark_init_done() {
  auto writers = state_->index.lock();
  if (init_state() == InitState::kNone) {
    throw Error(Errc::kInternal, "FUSE_INIT was answered before it was saved");
  }
  publish(state_->header().init_state, static_cast<std::uint32_t>(InitState::kDone));
}

std::vector<std::byte> SessionMemory::saved_init() const {
  auto writers = state_->index.lock();
  if (init_state() == InitState::kNone) return {};
  const Header& header = state_->header();
  return {header.init, header.init + header.init_size};
}

void SessionMemory::append(std::string_view record) {
  if (record.size() > SessionMemory::kMaxRecord) {
    throw Error(Errc::kInvalid, "a session record of " + std::to_string(record.size()) + " bytes");
  }
  auto writers = state_->index.lock();
  const auto [begin, size, area] = state_->log();
  if (kLogBytes - size < sizeof(std::uint32_t) + record.size()) {
    throw Error(Errc::kNoSpace, "the session log is full");
  }
  const std::uint64_t end = State::write_record(begin, size, record);
  publish(state_->header().log_end, area | end);
}

std::vector<std::string> SessionMemory::records() const {
  std::vector<std::string> all;
  auto writers = state_->index.lock();
  state_->each_record([&](std::string_view record) { all.emplace_back(record); });
  return all;
}

void SessionMemory::compact(const Keep& keep) {
  auto writers = state_->index.lock();
  std::vector<std::string_view> records;
  state_->each_record([&](std::string_view record) { records.push_back(record); });
  const std::vector<bool> kept = keep(records);
  const State::Log old = state_->log();
  const std::uint64_t other = old.area ^ kSecondArea;
  std::uint64_t end = 0;
  for (std::size_t i = 0; i < records.size(); ++i) {
    if (kept[i]) end = State::write_record(state_->area(other), end, records[i]);
  }
  publish(state_->header().log_end, other | end);
  writers->kept = end;
  ::madvise(old.begin, kLogBytes, MADV_REMOVE);  // gives the memory back; if not, so be it
}

bool SessionMemory::compaction_due() const {
  auto index = state_->index.lock();
  const std::uint64_t size = state_->log().size;
  if (size - index->kept < kSmallLog) return false;
  return size >= 2 * index->kept ||
         kLogBytes - size < sizeof(std::uint32_t) + SessionMemory::kMaxRecord;
}

std::optional<SessionMemory::Backing> SessionMemory::backing(std::uint64_t node_id) const {
  auto index = state_->index.lock();
  const auto found = index->nodes.find(node_id);
  if (found == index->nodes.end()) return std::nullopt;
  return found->second;
}

std::uint64_t SessionMemory::add_open(std::uint64_t node_id, std::int32_t backing_id,
                                      std::uint64_t request) {
  auto index = state_->index.lock();
  const auto known = index->nodes.find(node_id);
  if (node_id == kFree || (backing_id <= 0 && backing_id != kCached) ||
      (known != index->nodes.end() && known->second.backing_id != backing_id)) {
    throw Error(Errc::kInternal, "node " + std::to_string(node_id) + " cannot get backing id " +
                                     std::to_string(backing_id));
  }
  std::uint32_t& touched = state_->header().slots_touched;
  std::uint32_t at = load(touched);
  if (!index->free.empty()) {
    at = index->free.back();
    index->free.pop_back();
  } else if (at < kMaxOpens) {
    publish(touched, at + 1);
  } else {
    throw Error(Errc::kNoSpace, "too many files are open at once");
  }
  Slot& slot = state_->slots()[at];
  const std::uint32_t generation = load(slot.generation) + 1;
  publish(slot.generation, generation);
  publish(slot.request, request);
  publish(slot.backing_id, backing_id);
  publish(slot.node_id, node_id);
  State::count(*index, node_id, backing_id);
  return to_handle(at, generation);
}

std::optional<std::uint32_t> SessionMemory::remove_open(std::uint64_t node_id,
                                                        std::uint64_t handle) {
  const auto at = static_cast<std::uint32_t>(handle);
  auto index = state_->index.lock();
  if (at >= load(state_->header().slots_touched)) return std::nullopt;
  Slot& slot = state_->slots()[at];
  if (node_id == kFree || load(slot.node_id) != node_id ||
      to_handle(at, load(slot.generation)) != handle) {
    return std::nullopt;
  }
  publish(slot.node_id, kFree);
  index->free.push_back(at);
  const auto node = index->nodes.find(node_id);
  const std::uint32_t left = --node->second.opens;
  if (left == 0) index->nodes.erase(node);
  return left;
}

std::optional<SessionMemory::Open> SessionMemory::find_open(std::uint64_t request) const {
  auto index = state_->index.lock();
  std::optional<Open> found;
  state_->each_touched([&](std::uint32_t at, const Slot& slot) {
    if (load(slot.request) != request || load(slot.node_id) == kFree) return;
    found = Open{load(slot.node_id), to_handle(at, load(slot.generation))};
  });
  return found;
}

std::vector<SessionMemory::Backing> SessionMemory::backings() const {
  std::vector<Backing> all;
  auto index = state_->index.lock();
  all.reserve(index->nodes.size());
  for (const auto& [node_id, backing] : index->nodes) all.push_back(backing);
  return all;
}

}  // namespace weightfs::keeper
