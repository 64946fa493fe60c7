// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "digest/digest.hpp"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string_view>

struct sqlite3;
struct sqlite3_stmt;

/// SQLite as values that close themselves and errors that are Errors. Not for other layers.
namespace weightfs::store::sqlite {

/// One connection. Confined to one thread at a time. Errors: kNoSpace, kIo, kPermission; Damaged.
class Connection {
 public:
  /// Opens or creates. The database is held by this process alone (VFS "unix-excl"): the shared
  /// memory of the write-ahead log is then our own heap, so no full or failing disk can turn it
  /// into SIGBUS.
  explicit Connection(const std::filesystem::path& path);

  /// Runs statements that return nothing.
  void run(const char* sql);
  [[nodiscard]] sqlite3* handle() const noexcept { return handle_.get(); }

 private:
  struct Close {
    void operator()(sqlite3* handle) const noexcept;
  };
  std::unique_ptr<sqlite3, Close> handle_;
};

/// A prepared statement. Its connection must outlive it. Confined like it.
///
///     statement.bind(1, digest).bind(2, size);
///     while (statement.step()) use(statement.integer(0));   // resets itself at the end
class Statement {
 public:
  Statement(Connection& connection, const char* sql);

  Statement& bind(int index, std::int64_t value);
  Statement& bind(int index, const Digest& value);
  Statement& bind(int index, std::string_view value);
  /// True while there is a row; resets at the end and on errors.
  bool step();
  /// Steps to the end.
  void run();
  /// Ends a read before its last row.
  void reset() noexcept;

  [[nodiscard]] std::int64_t integer(int column) const noexcept;
  [[nodiscard]] std::string_view text(int column) const noexcept;
  /// Damaged if the column does not hold 32 bytes.
  [[nodiscard]] Digest digest(int column) const;

 private:
  struct Finalize {
    void operator()(sqlite3_stmt* handle) const noexcept;
  };
  Connection& connection_;
  std::unique_ptr<sqlite3_stmt, Finalize> handle_;
};

/// BEGIN IMMEDIATE; rolls back unless it was committed.
class Transaction {
 public:
  explicit Transaction(Connection& connection);
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  ~Transaction();
  void commit();

 private:
  Connection& connection_;
  bool open_ = true;
};

}  // namespace weightfs::store::sqlite
