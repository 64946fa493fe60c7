// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "store/sqlite.hpp"

#include "base/error.hpp"
#include "store/index_damaged.hpp"

#include <sqlite3.h>

#include <algorithm>
#include <cerrno>
#include <string>

namespace weightfs::store::sqlite {

namespace {

bool is_full(int errno_value) noexcept {
  return errno_value == ENOSPC || errno_value == EDQUOT;
}

[[noreturn]] void fail(sqlite3* handle, int result, std::string_view what) {
  std::string message = "the store's index: ";
  message += what;
  message += ": ";
  message += handle != nullptr ? sqlite3_errmsg(handle) : sqlite3_errstr(result);
  // A sector that cannot be read is as good as damaged: the files have all that is in the index.
  if (result == SQLITE_IOERR_READ || result == SQLITE_IOERR_CORRUPTFS) throw IndexDamaged(message);
  switch (result & 0xFF) {
    case SQLITE_FULL:
      throw Error(Errc::kNoSpace, message);
    case SQLITE_IOERR:  // a full quota is no full disk to SQLite
      throw Error(
          handle != nullptr && is_full(sqlite3_system_errno(handle)) ? Errc::kNoSpace : Errc::kIo,
          message);
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
    case SQLITE_ERROR:  // a table or column that should be there is not
    case SQLITE_MISMATCH:
    case SQLITE_FORMAT:
      throw IndexDamaged(message);
    case SQLITE_PERM:
    case SQLITE_AUTH:
      throw Error(Errc::kPermission, message);
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      throw Error(Errc::kBusy, message);
    default:
      throw Error(Errc::kIo, message);
  }
}

void check(sqlite3* handle, int result, std::string_view what) {
  if (result != SQLITE_OK) fail(handle, result, what);
}

}  // namespace

void Connection::Close::operator()(sqlite3* handle) const noexcept {
  sqlite3_close(handle);
}

Connection::Connection(const std::filesystem::path& path) {
  sqlite3* handle = nullptr;
  const int flags =
      SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
  const int result = sqlite3_open_v2(path.c_str(), &handle, flags, "unix-excl");
  handle_.reset(handle);
  check(handle, result, "open");
  // Readers of the other connection never block a writer in WAL mode, but recovery and checkpoints
  // do.
  sqlite3_busy_timeout(handle, 10'000);
}

void Connection::run(const char* sql) {
  check(handle_.get(), sqlite3_exec(handle_.get(), sql, nullptr, nullptr, nullptr), sql);
}

void Statement::Finalize::operator()(sqlite3_stmt* handle) const noexcept {
  sqlite3_finalize(handle);
}

Statement::Statement(Connection& connection, const char* sql) : connection_(connection) {
  sqlite3_stmt* handle = nullptr;
  check(
      connection.handle(),
      sqlite3_prepare_v3(connection.handle(), sql, -1, SQLITE_PREPARE_PERSISTENT, &handle, nullptr),
      sql);
  handle_.reset(handle);
}

Statement& Statement::bind(int index, std::int64_t value) {
  check(connection_.handle(), sqlite3_bind_int64(handle_.get(), index, value), "bind");
  return *this;
}

Statement& Statement::bind(int index, const Digest& value) {
  check(connection_.handle(),
        sqlite3_bind_blob(handle_.get(), index, value.bytes().data(), Digest::kSize,
                          SQLITE_TRANSIENT),
        "bind");
  return *this;
}

Statement& Statement::bind(int index, std::string_view value) {
  check(connection_.handle(),
        sqlite3_bind_text(handle_.get(), index, value.data(), static_cast<int>(value.size()),
                          SQLITE_TRANSIENT),
        "bind");
  return *this;
}

bool Statement::step() {
  const int result = sqlite3_step(handle_.get());
  if (result == SQLITE_ROW) return true;
  sqlite3_reset(handle_.get());
  if (result != SQLITE_DONE) fail(connection_.handle(), result, sqlite3_sql(handle_.get()));
  return false;
}

void Statement::run() {
  while (step()) {
  }
}

void Statement::reset() noexcept {
  sqlite3_reset(handle_.get());
}

std::int64_t Statement::integer(int column) const noexcept {
  return sqlite3_column_int64(handle_.get(), column);
}

std::string_view Statement::text(int column) const noexcept {
  const unsigned char* bytes = sqlite3_column_text(handle_.get(), column);
  const int size = sqlite3_column_bytes(handle_.get(), column);
  return {reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(size)};
}

Digest Statement::digest(int column) const {
  const auto* bytes = static_cast<const std::uint8_t*>(sqlite3_column_blob(handle_.get(), column));
  if (bytes == nullptr || sqlite3_column_bytes(handle_.get(), column) != Digest::kSize) {
    throw IndexDamaged("the store's index: a digest that is not 32 bytes long");
  }
  Digest::Bytes value;
  std::copy_n(bytes, Digest::kSize, value.begin());
  return Digest(value);
}

Transaction::Transaction(Connection& connection) : connection_(connection) {
  connection_.run("BEGIN IMMEDIATE");
}

Transaction::~Transaction() {
  if (open_) sqlite3_exec(connection_.handle(), "ROLLBACK", nullptr, nullptr, nullptr);
}

void Transaction::commit() {
  connection_.run("COMMIT");
  open_ = false;
}

}  // namespace weightfs::store::sqlite
