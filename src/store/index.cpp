// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "store/index.hpp"

#include "base/error.hpp"
#include "store/index_damaged.hpp"
#include "store/sqlite.hpp"

#include <fmt/format.h>

#include <cstring>
#include <system_error>

namespace weightfs::store {

namespace {

namespace fs = std::filesystem;
using sqlite::Connection;
using sqlite::Statement;
using sqlite::Transaction;

/// "wfsi" and the version of the schema: another one is rebuilt, not read.
constexpr std::int64_t kApplicationId = 0x77667369;
constexpr std::int64_t kSchemaVersion = 1;

/// Clustered by digest: lookups and inserts touch one leaf. Triggers keep the totals, so that they
/// hold whatever a transaction does.
constexpr const char* kSchema = R"sql(
CREATE TABLE meta(name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE totals(blobs INTEGER NOT NULL, bytes INTEGER NOT NULL);
INSERT INTO totals VALUES(0, 0);
CREATE TABLE blobs(
  digest BLOB PRIMARY KEY,
  size INTEGER NOT NULL,
  mtime_ns INTEGER NOT NULL,
  inode INTEGER NOT NULL,
  created INTEGER NOT NULL,
  last_used INTEGER NOT NULL,
  verified_boot INTEGER NOT NULL,
  published INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX unpublished ON blobs(digest) WHERE published = 0;
CREATE TRIGGER found AFTER INSERT ON blobs WHEN new.published = 1 BEGIN
  UPDATE totals SET blobs = blobs + 1, bytes = bytes + new.size;
END;
CREATE TRIGGER published AFTER UPDATE OF published ON blobs
    WHEN new.published <> old.published BEGIN
  UPDATE totals SET blobs = blobs + new.published - old.published,
                    bytes = bytes + (new.published - old.published) * new.size;
END;
CREATE TRIGGER removed AFTER DELETE ON blobs WHEN old.published = 1 BEGIN
  UPDATE totals SET blobs = blobs - 1, bytes = bytes - old.size;
END;
)sql";

constexpr const char* kColumns =
    "digest, size, mtime_ns, inode, created, last_used, verified_boot FROM blobs";

IndexRow row_of(const Statement& statement) {
  return {.digest = statement.digest(0),
          .identity = {.size = static_cast<std::uint64_t>(statement.integer(1)),
                       .mtime_ns = statement.integer(2),
                       .inode = static_cast<std::uint64_t>(statement.integer(3))},
          .created = statement.integer(4),
          .last_used = statement.integer(5),
          .verified_boot = statement.integer(6)};
}

std::int64_t single_integer(Connection& connection, const char* sql) {
  Statement statement(connection, sql);
  const std::int64_t value = statement.step() ? statement.integer(0) : 0;
  statement.reset();
  return value;
}

std::string meta(Connection& connection, std::string_view name) {
  Statement statement(connection, "SELECT value FROM meta WHERE name = ?");
  statement.bind(1, name);
  std::string value;
  if (statement.step()) value = statement.text(0);
  statement.reset();
  return value;
}

void set_meta(Connection& connection, std::string_view name, std::string_view value) {
  Statement(connection, "REPLACE INTO meta VALUES(?, ?)").bind(1, name).bind(2, value).run();
}

Connection connect(const fs::path& path) {
  Connection connection(path);
  connection.run("PRAGMA journal_mode = WAL");
  connection.run("PRAGMA synchronous = NORMAL");
  connection.run("PRAGMA temp_store = MEMORY");
  connection.run("PRAGMA cache_size = -8192");  // KiB
  return connection;
}

void remove_files(const fs::path& path) {
  for (const char* suffix : {"", "-wal", "-shm", "-journal", ".tmp"}) {
    std::error_code error;
    fs::remove(path.string() + suffix, error);
    if (error) throw_errno(error.value(), "remove " + path.string() + suffix);
  }
}

}  // namespace

void Index::leave_locks_behind(const fs::path& path) {
  const std::string temporary = path.string() + ".tmp";
  for (const char* suffix : {"-wal", ""}) {
    const std::string file = path.string() + suffix;
    std::error_code error;
    if (!fs::exists(file, error)) continue;
    if (!error) fs::copy_file(file, temporary, fs::copy_options::overwrite_existing, error);
    if (!error) fs::rename(temporary, file, error);
    if (error) {
      fs::remove(temporary, error);
      return remove_files(path);
    }
  }
}

struct Index::Writer {
  explicit Writer(const fs::path& path) : connection(connect(path)) {}

  /// The statements need the schema, which a new index has only after it was made.
  void prepare() {
    insert.emplace(connection, "INSERT INTO blobs VALUES(?, ?, ?, ?, ?, ?, ?, ?)");
    publish.emplace(connection, "UPDATE blobs SET published = ? WHERE digest = ?");
    remove.emplace(connection, "DELETE FROM blobs WHERE digest = ?");
    set_verified.emplace(connection, "UPDATE blobs SET verified_boot = ? WHERE digest = ?");
    set_last_used.emplace(connection,
                          "UPDATE blobs SET last_used = max(last_used, ?) WHERE digest = ?");
  }

  void add(const IndexRow& row, bool published) {
    insert->bind(1, row.digest)
        .bind(2, static_cast<std::int64_t>(row.identity.size))
        .bind(3, row.identity.mtime_ns)
        .bind(4, static_cast<std::int64_t>(row.identity.inode))
        .bind(5, row.created)
        .bind(6, row.last_used)
        .bind(7, row.verified_boot)
        .bind(8, std::int64_t{published ? 1 : 0})
        .run();
  }

  Connection connection;
  std::optional<Statement> insert;
  std::optional<Statement> publish;
  std::optional<Statement> remove;
  std::optional<Statement> set_verified;
  std::optional<Statement> set_last_used;
};

struct Index::Reader {
  explicit Reader(const fs::path& path)
      : connection(connect(path)),
        find(connection,
             fmt::format("SELECT {} WHERE digest = ? AND published = 1", kColumns).c_str()),
        totals(connection, "SELECT blobs, bytes FROM totals"),
        list(connection,
             "SELECT digest FROM blobs WHERE digest > ? AND published = 1 ORDER BY digest LIMIT ?"),
        list_first(connection,
                   "SELECT digest FROM blobs WHERE published = 1 ORDER BY digest LIMIT ?"),
        unpublished(connection, fmt::format("SELECT {} WHERE published = 0", kColumns).c_str()) {}

  Connection connection;
  Statement find;
  Statement totals;
  Statement list;
  Statement list_first;
  Statement unpublished;
};

Index::Index(const fs::path& path, std::string_view root, Opening opening) : path_(path) {
  auto writer = std::make_unique<Writer>(path);
  Connection& connection = writer->connection;
  if (opening == Opening::kNew) {
    Transaction transaction(connection);
    connection.run(kSchema);
    connection.run(fmt::format("PRAGMA application_id = {}", kApplicationId).c_str());
    connection.run(fmt::format("PRAGMA user_version = {}", kSchemaVersion).c_str());
    set_meta(connection, "root", root);
    transaction.commit();
  } else if (single_integer(connection, "PRAGMA application_id") != kApplicationId ||
             single_integer(connection, "PRAGMA user_version") != kSchemaVersion ||
             meta(connection, "root") != root || meta(connection, "whole") != "yes") {
    throw IndexDamaged("the store's index is not whole, or of another store or version");
  }
  writer->prepare();
  reader_.with([&](auto& reader) { reader = std::make_unique<Reader>(path); });
  writer_.with([&](auto& slot) { slot = std::move(writer); });
}

Index::~Index() = default;

std::unique_ptr<Index> Index::open(const fs::path& path, std::string_view root) {
  std::error_code error;
  if (!fs::exists(path, error)) return nullptr;
  try {
    return std::unique_ptr<Index>(new Index(path, root, Opening::kExisting));
  } catch (const IndexDamaged&) {
    return nullptr;
  }
}

std::unique_ptr<Index> Index::create(const fs::path& path, std::string_view root) {
  remove_files(path);
  return std::unique_ptr<Index>(new Index(path, root, Opening::kNew));
}

template <class F>
auto Index::guarded(F&& body) const {
  try {
    return body();
  } catch (const IndexDamaged&) {
    std::error_code ignored;
    fs::remove(path_, ignored);
    throw;
  }
}

void Index::add_found(std::span<const IndexRow> rows) {
  guarded([&] {
    writer_.with([&](auto& writer) {
      Transaction transaction(writer->connection);
      for (const IndexRow& row : rows) writer->add(row, true);
      transaction.commit();
    });
  });
}

void Index::finish_rebuild() {
  guarded(
      [&] { writer_.with([&](auto& writer) { set_meta(writer->connection, "whole", "yes"); }); });
}

std::optional<IndexRow> Index::find(const Digest& digest) const {
  return guarded([&] {
    return reader_.with([&](const auto& reader) -> std::optional<IndexRow> {
      reader->find.bind(1, digest);
      if (!reader->find.step()) return std::nullopt;
      const IndexRow row = row_of(reader->find);
      reader->find.reset();
      return row;
    });
  });
}

IndexTotals Index::totals() const {
  return guarded([&] {
    return reader_.with([](const auto& reader) {
      IndexTotals totals;
      if (reader->totals.step()) {
        totals = {.blobs = static_cast<std::uint64_t>(reader->totals.integer(0)),
                  .bytes = static_cast<std::uint64_t>(reader->totals.integer(1))};
        reader->totals.reset();
      }
      return totals;
    });
  });
}

std::vector<Digest> Index::list(const std::optional<Digest>& after, std::size_t limit) const {
  return guarded([&] {
    return reader_.with([&](const auto& reader) {
      Statement& statement = after ? reader->list : reader->list_first;
      if (after) statement.bind(1, *after);
      statement.bind(after ? 2 : 1, static_cast<std::int64_t>(limit));
      std::vector<Digest> digests;
      while (statement.step()) digests.push_back(statement.digest(0));
      return digests;
    });
  });
}

std::vector<IndexRow> Index::unpublished() const {
  return guarded([&] {
    return reader_.with([](const auto& reader) {
      std::vector<IndexRow> rows;
      while (reader->unpublished.step()) rows.push_back(row_of(reader->unpublished));
      return rows;
    });
  });
}

void Index::begin_publish(const IndexRow& row, Durability durability) {
  const auto put = [&](Writer& writer) {
    Transaction transaction(writer.connection);
    writer.remove->bind(1, row.digest).run();
    writer.add(row, false);
    transaction.commit();
  };
  guarded([&] {
    writer_.with([&](auto& writer) {
      if (durability == Durability::kLazy) return put(*writer);
      // Only this transaction must be on disk before what follows; the others may be lost and are
      // found out by comparing with the file.
      writer->connection.run("PRAGMA synchronous = FULL");
      try {
        put(*writer);
      } catch (...) {
        writer->connection.run("PRAGMA synchronous = NORMAL");
        throw;
      }
      writer->connection.run("PRAGMA synchronous = NORMAL");
    });
  });
}

void Index::end_publish(const Digest& digest) {
  set_published(digest, 1);
}

void Index::begin_remove(const Digest& digest) {
  set_published(digest, 0);
}

void Index::set_published(const Digest& digest, std::int64_t published) {
  guarded([&] {
    writer_.with([&](auto& writer) { writer->publish->bind(1, published).bind(2, digest).run(); });
  });
}

void Index::remove(const Digest& digest) {
  guarded([&] { writer_.with([&](auto& writer) { writer->remove->bind(1, digest).run(); }); });
}

void Index::set_verified(const Digest& digest, std::int64_t boot) {
  guarded([&] {
    writer_.with([&](auto& writer) { writer->set_verified->bind(1, boot).bind(2, digest).run(); });
  });
}

void Index::set_last_used(std::span<const std::pair<Digest, std::int64_t>> uses) {
  guarded([&] {
    writer_.with([&](auto& writer) {
      Transaction transaction(writer->connection);
      for (const auto& [digest, time] : uses) {
        writer->set_last_used->bind(1, time).bind(2, digest).run();
      }
      transaction.commit();
    });
  });
}

std::int64_t boot_number(std::string_view boot_id) {
  const Digest digest = Digest::of(boot_id);
  std::int64_t number = 0;
  std::memcpy(&number, digest.bytes().data(), sizeof number);
  return number == 0 ? 1 : number;
}

}  // namespace weightfs::store
