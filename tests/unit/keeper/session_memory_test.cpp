// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "keeper/session_memory.hpp"

#include "base/error.hpp"
#include "base/file.hpp"
#include "error_of.hpp"

#include <catch2/catch_test_macros.hpp>

#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <atomic>
#include <csignal>
#include <map>
#include <random>
#include <thread>

namespace weightfs::keeper::test {
namespace {

std::vector<std::byte> bytes(std::string_view text) {
  const auto view = std::as_bytes(std::span(text));
  return {view.begin(), view.end()};
}

std::uint64_t memory_used(const Fd& memory) {
  struct stat status{};
  REQUIRE(::fstat(memory.value(), &status) == 0);
  return static_cast<std::uint64_t>(status.st_blocks) * 512;
}

TEST_CASE("a new session memory is empty and takes next to no memory") {
  const Fd memory = SessionMemory::create();
  const SessionMemory session(memory);
  CHECK(session.init_state() == SessionMemory::InitState::kNone);
  CHECK(session.saved_init().empty());
  CHECK(session.records().empty());
  CHECK(session.backings().empty());
  CHECK(memory_used(memory) <= 16 << 10);
}

TEST_CASE("a session memory cannot be resized under the one who maps it") {
  const Fd memory = SessionMemory::create();
  CHECK(::ftruncate(memory.value(), 4096) != 0);
  CHECK(::ftruncate(memory.value(), 1LL << 40) != 0);
}

TEST_CASE("a successor sees what was saved") {
  const Fd memory = SessionMemory::create();
  std::uint64_t first = 0;
  std::uint64_t second = 0;
  {
    SessionMemory session(memory);
    session.save_init(bytes("init as it came"));
    CHECK(session.init_state() == SessionMemory::InitState::kPending);
    session.mark_init_done();
    session.append("first");
    session.append("");
    session.append(std::string(64 << 10, 'x'));
    first = session.add_open(11, 3, 100);
    second = session.add_open(11, 3, 102);
    session.add_open(12, SessionMemory::kCached, 104);
  }
  SessionMemory session(memory.duplicate());
  CHECK(session.init_state() == SessionMemory::InitState::kDone);
  CHECK(session.saved_init() == bytes("init as it came"));
  CHECK(session.records() == std::vector<std::string>{"first", "", std::string(64 << 10, 'x')});
  CHECK(session.backings().size() == 2);
  CHECK(session.backing(11)->backing_id == 3);
  CHECK(session.backing(11)->opens == 2);
  CHECK(session.backing(12)->backing_id == SessionMemory::kCached);
  CHECK_FALSE(session.backing(13));
  CHECK(session.find_open(102)->node_id == 11);
  CHECK(session.find_open(102)->handle == second);
  CHECK_FALSE(session.find_open(106));
  CHECK(session.remove_open(11, first) == 1);
  CHECK(session.remove_open(11, second) == 0);
  CHECK_FALSE(session.find_open(102));
}

TEST_CASE("a handle is removed once, also when its slot is in use again") {
  const Fd memory = SessionMemory::create();
  SessionMemory session(memory);
  const std::uint64_t old = session.add_open(5, 1, 2);
  CHECK(session.remove_open(5, old) == 0);
  CHECK_FALSE(session.remove_open(5, old));
  const std::uint64_t now = session.add_open(5, 1, 4);
  CHECK(now != old);
  CHECK_FALSE(session.remove_open(5, old));
  CHECK_FALSE(session.remove_open(6, now));
  CHECK_FALSE(session.remove_open(5, ~0ULL));
  CHECK(session.backing(5)->opens == 1);
}

TEST_CASE("an INIT that was resent replaces the pending one, but none follows an answered one") {
  const Fd memory = SessionMemory::create();
  SessionMemory session(memory);
  CHECK(error_of([&] { session.mark_init_done(); }) == Errc::kInternal);
  session.save_init(bytes("once"));
  session.save_init(bytes("and again"));
  CHECK(session.saved_init() == bytes("and again"));
  session.mark_init_done();
  CHECK(error_of([&] { session.save_init(bytes("late")); }) == Errc::kInternal);
  CHECK(error_of([&] { session.save_init(std::vector<std::byte>(1025)); }) == Errc::kInvalid);
}

TEST_CASE("slots are used again") {
  const Fd memory = SessionMemory::create();
  SessionMemory session(memory);
  std::uint32_t left = 0;
  for (std::uint64_t node = 1; node <= 2 * SessionMemory::kMaxOpens; ++node) {
    left += session.remove_open(node, session.add_open(node, 1, node)).value();
  }
  CHECK(left == 0);
  CHECK(session.backings().empty());
  CHECK(memory_used(memory) <= 16 << 10);
}

TEST_CASE("misuse of a slot is an internal error and changes nothing") {
  const Fd memory = SessionMemory::create();
  SessionMemory session(memory);
  session.add_open(5, 1, 2);
  CHECK(error_of([&] { session.add_open(5, 2, 4); }) == Errc::kInternal);
  CHECK(error_of([&] { session.add_open(6, 0, 4); }) == Errc::kInternal);
  CHECK(error_of([&] { session.add_open(0, 1, 4); }) == Errc::kInternal);
  CHECK(session.backings().size() == 1);
  CHECK(session.backing(5)->opens == 1);
}

TEST_CASE("a full table and a full log say so and keep what they have") {
  const Fd memory = SessionMemory::create();
  SessionMemory session(memory);
  std::uint64_t some = 0;
  for (std::uint64_t node = 1; node <= SessionMemory::kMaxOpens; ++node) {
    const std::uint64_t handle = session.add_open(node, 1, node);
    if (node == 77) some = handle;
  }
  CHECK(error_of([&] { session.add_open(1U << 30, 1, 1U << 30); }) == Errc::kNoSpace);
  CHECK(SessionMemory(memory).backings().size() == SessionMemory::kMaxOpens);
  session.remove_open(77, some);
  session.add_open(1U << 30, 1, 1U << 30);
  CHECK(error_of([&] { session.append(std::string(SessionMemory::kMaxRecord + 1, 'x')); }) ==
        Errc::kInvalid);

  const std::string record(SessionMemory::kMaxRecord, 'x');
  std::size_t appended = 0;
  while (!error_of([&] { session.append(record); })) ++appended;
  CHECK(appended == SessionMemory::kLogBytes / (record.size() + 4));
  CHECK(error_of([&] { session.append(record); }) == Errc::kNoSpace);
}

TEST_CASE("a session memory that is not one, is damaged or of another version is refused") {
  const auto open = [](const Fd& memory) { SessionMemory session(memory); };
  const auto damaged = [](std::uint64_t offset, std::uint64_t value) {
    Fd memory = SessionMemory::create();
    SessionMemory(memory).append("record");
    write_at(memory, offset, std::as_bytes(std::span(&value, 1)));
    return memory;
  };
  constexpr std::uint64_t kSlots = 4096;
  constexpr std::uint64_t kLog = kSlots + SessionMemory::kMaxOpens * 24;

  CHECK(error_of([&] { open(Fd(::memfd_create("empty", MFD_CLOEXEC))); }) == Errc::kCorrupt);
  CHECK(error_of([&] { open(damaged(0, 1)); }) == Errc::kCorrupt);
  CHECK(error_of([&] { open(damaged(8, 1)); }) == Errc::kUnsupported);
  CHECK(error_of([&] { open(damaged(16, 9)); }) == Errc::kCorrupt);         // ends inside a record
  CHECK(error_of([&] { open(damaged(16, ~0ULL)); }) == Errc::kCorrupt);     // longer than its room
  CHECK(error_of([&] { open(damaged(kLog, ~0ULL)); }) == Errc::kCorrupt);   // a huge record
  CHECK(error_of([&] { open(damaged(24, 1ULL << 32)); }) == std::nullopt);  // a touched, free slot
  CHECK(error_of([&] { open(damaged(24, ~0ULL)); }) == Errc::kCorrupt);

  const Fd memory = damaged(kSlots, 7);                    // node 7, the rest still zero
  CHECK(error_of([&] { open(memory); }) == std::nullopt);  // the slot does not count yet
  const std::uint64_t touched = 1ULL << 32;
  write_at(memory, 24, std::as_bytes(std::span(&touched, 1)));
  CHECK(error_of([&] { open(memory); }) == Errc::kCorrupt);
}

/// Keeps the records that begin with '+'.
std::vector<bool> keep_marked(std::span<const std::string_view> records) {
  std::vector<bool> keep;
  for (const std::string_view record : records) keep.push_back(record.starts_with('+'));
  return keep;
}

TEST_CASE("a compaction takes out what is not kept, in either area, and successors see the rest") {
  const Fd memory = SessionMemory::create();
  SessionMemory session(memory);
  std::vector<std::string> kept;
  for (int round = 0; round < 5; ++round) {
    session.append("gone");
    kept.push_back("+" + std::to_string(round));
    session.append(kept.back());
    session.append("");
    session.compact(keep_marked);
    CHECK(session.records() == kept);
    CHECK(SessionMemory(memory).records() == kept);
  }
  session.compact([](std::span<const std::string_view> records) {
    return std::vector<bool>(records.size(), false);
  });
  CHECK(SessionMemory(memory).records().empty());
}

TEST_CASE("a log that is compacted when that is due takes records without end") {
  const Fd memory = SessionMemory::create();
  SessionMemory session(memory);
  const std::string record(60 << 10, 'x');
  const std::string kept = '+' + record;
  session.append(kept);
  int compactions = 0;
  for (std::uint64_t written = 0; written < 2 * SessionMemory::kLogBytes;
       written += record.size()) {
    if (session.compaction_due()) {
      session.compact(keep_marked);
      ++compactions;
      CHECK_FALSE(session.compaction_due());
    }
    session.append(record);
    if (memory_used(memory) > 4 << 20) FAIL("it takes " << memory_used(memory) << " bytes");
  }
  CHECK(compactions > 100);
  CHECK(session.records().front() == kept);

  // What is kept leaves little room: not again until that much was written.
  while (!error_of([&] { session.append(kept); })) {
  }
  REQUIRE(session.compaction_due());
  session.compact(keep_marked);
  int appended = 0;
  while (!session.compaction_due() && !error_of([&] { session.append(kept); })) ++appended;
  CHECK(appended < 40);  // there was as much room as the unmarked ones took
  CHECK(error_of([&] { session.append(kept); }) == Errc::kNoSpace);
}

TEST_CASE("a writer killed at any instruction of a compaction leaves the log before or after it") {
  const Fd memory = SessionMemory::create();
  SessionMemory session(memory);
  const std::vector<std::string> before{"gone", "+kept", "", "+" + std::string(200, 'k'), "gone"};
  const std::vector<std::string> after{before[1], before[3]};
  for (const std::string& record : before) session.append(record);
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    SessionMemory writer(memory);
    ::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
    ::raise(SIGSTOP);
    writer.compact(keep_marked);
    ::_exit(0);
  }
  // What is seen between two instructions is what a kill there would leave.
  std::uint64_t steps = 0;
  std::uint64_t switched = 0;
  int status = 0;
  for (; ::waitpid(child, &status, 0) == child && WIFSTOPPED(status); ++steps) {
    const std::vector<std::string> records = session.records();
    const bool is_after = records == after;
    if (!is_after && records != before) FAIL("a mixture after " << steps << " instructions");
    if (is_after && switched == 0) switched = steps;
    if (!is_after && switched != 0) FAIL("the old log is back after " << steps << " instructions");
    if (::ptrace(PTRACE_SINGLESTEP, child, nullptr, nullptr) != 0) break;
  }
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
  CHECK(switched > 100);
  CHECK(steps > switched);
  CHECK(SessionMemory(memory).records() == after);
}

TEST_CASE("threads count opens of shared node ids without losing any") {
  const Fd memory = SessionMemory::create();
  SessionMemory session(memory);
  session.add_open(1, 1, 0);
  {
    std::vector<std::jthread> threads;
    for (std::uint64_t own = 2; own < 6; ++own) {
      threads.emplace_back([&, own] {
        for (int i = 0; i < 2000; ++i) {
          session.add_open(1, 1, 0);
          const std::uint64_t handle = session.add_open(own, 1, 0);
          session.append("+record");
          if (i % 100 == 0) session.compact(keep_marked);
          session.remove_open(own, handle);
        }
      });
    }
  }
  CHECK(session.backing(1)->opens == 8001);
  CHECK(session.records().size() == 8000);
  CHECK(session.backings().size() == 1);
}

// The writer that is killed: step n is a function of n alone, so that what the memory must hold
// after n steps can be computed. The request number of an open is its step.
constexpr std::uint64_t kNodes = 37;

struct Step {
  std::uint64_t node;
  bool release;
};
Step step_at(std::uint64_t n) {
  // Each node: three opens, then three releases, over and over, nodes interleaved.
  return {.node = 1 + n % kNodes, .release = n / kNodes % 6 >= 3};
}
std::string record_at(std::uint64_t n) {
  return std::to_string(n) + std::string(n * 7919 % 300, static_cast<char>('a' + n % 26));
}

void perform(SessionMemory& session, std::uint64_t n) {
  const Step step = step_at(n);
  if (step.release) {
    const auto opened = session.find_open(n - 3 * kNodes);
    session.remove_open(step.node, opened.value().handle);
  } else {
    session.add_open(step.node, static_cast<std::int32_t>(step.node * 3), n);
  }
}

std::map<std::uint64_t, std::uint32_t> opens_after(std::uint64_t steps) {
  std::map<std::uint64_t, std::uint32_t> opens;
  for (std::uint64_t n = steps - std::min(steps, steps % (6 * kNodes)); n < steps; ++n) {
    const Step step = step_at(n);
    if (step.release ? --opens[step.node] == 0 : ++opens[step.node] == 0) opens.erase(step.node);
  }
  return opens;
}

std::map<std::uint64_t, std::uint32_t> opens_in(const SessionMemory& session) {
  std::map<std::uint64_t, std::uint32_t> opens;
  for (const SessionMemory::Backing& backing : session.backings()) {
    CHECK(backing.backing_id == static_cast<std::int32_t>(backing.node_id * 3));
    opens[backing.node_id] = backing.opens;
  }
  return opens;
}

TEST_CASE("a writer killed at any instruction leaves the state before or after its step") {
  const Fd memory = SessionMemory::create();
  void* shared = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  REQUIRE(shared != MAP_FAILED);
  auto& done = *new (shared) std::atomic<std::uint64_t>(0);
  std::mt19937_64 random(20);

  for (int life = 0; life < 50; ++life) {
    const std::uint64_t until = done + 1 + random() % 400;
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      try {
        SessionMemory session(memory);
        for (; done < until + 500; ++done) {  // bounded, in case the parent is slow
          perform(session, done);
          session.append(record_at(done));
        }
        for (;;) ::pause();
      } catch (...) {
        ::_exit(1);
      }
    }
    int status = 0;
    while (done < until && ::waitpid(child, &status, WNOHANG) == 0) {
    }
    ::kill(child, SIGKILL);
    ::waitpid(child, &status, 0);
    REQUIRE(WIFSIGNALED(status));

    SessionMemory session(memory);
    const std::vector<std::string> records = session.records();
    const std::uint64_t steps = done;
    // Killed before, between or after the two halves of step `done`.
    REQUIRE(records.size() >= steps);
    REQUIRE(records.size() <= steps + 1);
    std::uint64_t intact = 0;
    while (intact < records.size() && records[intact] == record_at(intact)) ++intact;
    REQUIRE(intact == records.size());
    const auto opens = opens_in(session);
    const bool performed = opens != opens_after(steps);
    if (performed) REQUIRE(opens == opens_after(steps + 1));
    if (records.size() == steps + 1) REQUIRE(performed);
    // The successor goes on where this one ended.
    if (performed && records.size() == steps) session.append(record_at(steps));
    if (performed) ++done;
  }
  ::munmap(shared, 4096);
}

TEST_CASE("a writer killed while it saves INIT leaves none or a whole one") {
  for (int life = 0; life < 20; ++life) {
    const Fd memory = SessionMemory::create();
    int ready[2];
    REQUIRE(::pipe(ready) == 0);
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      SessionMemory session(memory);
      if (::write(ready[1], "r", 1) != 1) ::_exit(1);
      for (unsigned n = 0;; ++n) {
        session.save_init(std::vector<std::byte>(1 + n % 1024, static_cast<std::byte>(n % 1024)));
      }
    }
    char byte = 0;
    REQUIRE(::read(ready[0], &byte, 1) == 1);
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    ::close(ready[0]);
    ::close(ready[1]);
    const SessionMemory session(memory);
    const std::vector<std::byte> init = session.saved_init();
    CHECK(init.empty() == (session.init_state() == SessionMemory::InitState::kNone));
    CHECK(init == std::vector<std::byte>(init.size(), static_cast<std::byte>(init.size() - 1)));
  }
}

}  // namespace
}  // namespace weightfs::keeper::test
