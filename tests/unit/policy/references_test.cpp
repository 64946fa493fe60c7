// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "policy/references.hpp"

#include "snapshots.hpp"

#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <random>
#include <string>
#include <utility>
#include <vector>

using namespace weightfs;
using namespace weightfs::policy;
using weightfs::tests::snapshot;
using Seen = References::Seen;

TEST_CASE("a second consumer proves a snapshot, however often the first one comes back") {
  References references;
  CHECK(references.refer(snapshot(1), "pod-a") == Seen::kFirst);
  CHECK(references.refer(snapshot(1), "pod-a") == Seen::kAgain);
  CHECK_FALSE(references.proven(snapshot(1)));
  CHECK(references.refer(snapshot(1), "pod-b") == Seen::kSecond);
  CHECK(references.proven(snapshot(1)));
  CHECK(references.refer(snapshot(1), "pod-a") == Seen::kProven);
  CHECK(references.refer(snapshot(2), "pod-a") == Seen::kFirst);
}

TEST_CASE("a decision proves a snapshot, known or not") {
  References references;
  references.prove(snapshot(1));
  CHECK(references.refer(snapshot(1), "pod-a") == Seen::kProven);
  CHECK(references.refer(snapshot(2), "pod-a") == Seen::kFirst);
  references.prove(snapshot(2));
  CHECK(references.refer(snapshot(2), "pod-a") == Seen::kProven);
}

TEST_CASE("what is forgotten begins anew") {
  References references;
  references.prove(snapshot(1));
  references.forget(snapshot(1));
  references.forget(snapshot(1));
  CHECK_FALSE(references.proven(snapshot(1)));
  CHECK(references.refer(snapshot(1), "pod-a") == Seen::kFirst);
}

TEST_CASE("what was not referred to for the longest is forgotten first") {
  References references(2);
  references.refer(snapshot(1), "pod-a");
  references.refer(snapshot(2), "pod-a");
  references.refer(snapshot(1), "pod-a");
  references.refer(snapshot(3), "pod-a");
  CHECK(references.refer(snapshot(1), "pod-b") == Seen::kSecond);
  CHECK(references.refer(snapshot(2), "pod-b") == Seen::kFirst);
  CHECK(references.records().size() == 2);

  References one(0);
  CHECK(one.refer(snapshot(1), "pod-a") == Seen::kFirst);
  CHECK(one.refer(snapshot(1), "pod-b") == Seen::kSecond);
}

TEST_CASE("the hash of a consumer is the same in every process") {
  References references;
  references.refer(snapshot(1), "pod-a");
  CHECK(references.records().front().first_consumer == 0x4977d9352ce5c716);
}

namespace {

/// References as a plain list of what was said, looked through from the start each time.
class NaiveReferences {
 public:
  explicit NaiveReferences(std::size_t most) : most_(most) {}

  Seen refer(const Digest& snapshot, const std::string& consumer) {
    const auto found = std::ranges::find(known_, snapshot, &Known::snapshot);
    if (found == known_.end()) {
      known_.push_back({snapshot, consumer, false});
      if (known_.size() > most_) known_.erase(known_.begin());
      return Seen::kFirst;
    }
    Known known = *found;
    known_.erase(found);
    const bool was_proven = known.proven;
    known.proven = was_proven || known.consumer != consumer;
    known_.push_back(known);
    if (was_proven) return Seen::kProven;
    return known.proven ? Seen::kSecond : Seen::kAgain;
  }

  void prove(const Digest& snapshot) {
    refer(snapshot, "a decision");
    known_.back().proven = true;
  }

  void forget(const Digest& snapshot) {
    std::erase_if(known_, [&](const Known& known) { return known.snapshot == snapshot; });
  }

  bool proven(const Digest& snapshot) const {
    return std::ranges::any_of(
        known_, [&](const Known& known) { return known.snapshot == snapshot && known.proven; });
  }

 private:
  struct Known {
    Digest snapshot;
    std::string consumer;
    bool proven;
  };
  std::size_t most_;
  std::vector<Known> known_;
};

References restarted(const References& before, std::size_t most) {
  References after(most);
  for (const References::Record& record : before.records()) after.restore(record);
  return after;
}

}  // namespace

TEST_CASE("references agree with a naive model, with a restart at every step") {
  for (unsigned seed = 0; seed < 20; ++seed) {
    std::mt19937 random(seed);
    const auto upto = [&](int most) {
      return static_cast<int>(random() % static_cast<unsigned>(most));
    };
    const std::size_t most = 1 + seed;
    References references(most);
    NaiveReferences naive(most);
    for (int step = 0; step < 400; ++step) {
      CAPTURE(seed, step);
      const Digest which = snapshot(upto(24));
      const int what = upto(20);
      if (what == 0) {
        references.forget(which);
        naive.forget(which);
      } else if (what == 1) {
        references.prove(which);
        naive.prove(which);
      } else {
        const std::string consumer = "pod-" + std::to_string(upto(3));
        REQUIRE(references.refer(which, consumer) == naive.refer(which, consumer));
      }
      const auto before = references.records();
      references = restarted(references, most);
      REQUIRE(references.records() == before);
      for (int i = 0; i < 24; ++i) {
        REQUIRE(references.proven(snapshot(i)) == naive.proven(snapshot(i)));
      }
    }
  }
}
