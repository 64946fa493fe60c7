// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "control/server.hpp"

#include "base/error.hpp"
#include "base/synchronized.hpp"
#include "control/peer.hpp"

#include <microhttpd.h>

#include <cerrno>
#include <condition_variable>
#include <cstdarg>
#include <cstdio>
#include <exception>
#include <string>
#include <string_view>
#include <utility>

namespace weightfs::control {

namespace {

constexpr std::size_t kThreadStack = 512 << 10;
constexpr std::size_t kHeaderMemory = 32 << 10;
/// How long the last answers may take when the server stops.
constexpr std::chrono::seconds kFarewell{2};

/// One request while it arrives. Made when its first line is there, deleted when it is over.
struct Arriving {
  std::string target;
  std::string body;
  bool started = false;
  bool too_large = false;
};

Method method_of(std::string_view text) noexcept {
  if (text == MHD_HTTP_METHOD_GET) return Method::kGet;
  if (text == MHD_HTTP_METHOD_POST) return Method::kPost;
  if (text == MHD_HTTP_METHOD_PUT) return Method::kPut;
  if (text == MHD_HTTP_METHOD_DELETE) return Method::kDelete;
  return Method::kOther;
}

std::optional<uid_t> user_of(MHD_Connection* connection) {
  const MHD_ConnectionInfo* info =
      MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
  return info == nullptr ? std::nullopt : peer_user(info->connect_fd);
}

MHD_Result send(MHD_Connection* connection, const Response& answer) {
  // libmicrohttpd copies the body (MUST_COPY), so it does not have to outlive this call; it takes
  // void* although it does not write.
  using ResponsePtr = std::unique_ptr<MHD_Response, decltype(&MHD_destroy_response)>;
  const ResponsePtr response(
      MHD_create_response_from_buffer(answer.body.size(), const_cast<char*>(answer.body.data()),
                                      MHD_RESPMEM_MUST_COPY),
      &MHD_destroy_response);
  if (!response) return MHD_NO;
  (void)MHD_add_response_header(response.get(), MHD_HTTP_HEADER_CONTENT_TYPE, "application/json");
  (void)MHD_add_response_header(response.get(), MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
  return MHD_queue_response(connection, static_cast<unsigned>(answer.status), response.get());
}

}  // namespace

class Server::State {
 public:
  State(ListenSocket socket, Handler& handler, ServerOptions options, Log log)
      : socket_(std::move(socket)), handler_(handler), options_(options), log_(std::move(log)) {
    // libmicrohttpd closes the descriptor that it listens on.
    Fd listening = socket_.fd().duplicate();
    daemon_ = MHD_start_daemon(MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_THREAD_PER_CONNECTION |
                                   MHD_USE_POLL | MHD_USE_ITC | MHD_USE_ERROR_LOG,
                               0, nullptr, nullptr, &on_request, this,             //
                               MHD_OPTION_EXTERNAL_LOGGER, &on_log, this,          //
                               MHD_OPTION_LISTEN_SOCKET, listening.value(),        //
                               MHD_OPTION_URI_LOG_CALLBACK, &on_target, this,      //
                               MHD_OPTION_NOTIFY_COMPLETED, &on_completed, this,   //
                               MHD_OPTION_CONNECTION_LIMIT, options_.connections,  //
                               MHD_OPTION_CONNECTION_TIMEOUT,
                               static_cast<unsigned>(options_.idle_timeout.count()),
                               MHD_OPTION_CONNECTION_MEMORY_LIMIT, kHeaderMemory,  //
                               MHD_OPTION_THREAD_STACK_SIZE, kThreadStack,         //
                               MHD_OPTION_END);
    if (daemon_ == nullptr) throw_errno(errno, "start the control server");
    (void)listening.release();
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  ~State() {
    // Stop accepting, let those who wait go, see their answers out, and only then cut connections.
    const Fd listening(MHD_quiesce_daemon(daemon_));
    handler_.close();
    {
      auto running = running_.lock();
      running.wait_until(none_running_, std::chrono::steady_clock::now() + kFarewell,
                         [&] { return *running == 0; });
    }
    MHD_stop_daemon(daemon_);
  }

 private:
  static void* on_target(void* self, const char* target, MHD_Connection*) noexcept {
    // The one place that sees the target before it is decoded: a name may contain an encoded '/'.
    try {
      auto arriving = std::make_unique<Arriving>(Arriving{.target = target, .body = {}});
      static_cast<State*>(self)->running_.with([](std::size_t& running) { ++running; });
      return arriving.release();
    } catch (const std::bad_alloc&) {
      return nullptr;
    }
  }

  static void on_completed(void* self, MHD_Connection*, void** request,
                           MHD_RequestTerminationCode) noexcept {
    const std::unique_ptr<Arriving> arriving(
        static_cast<Arriving*>(std::exchange(*request, nullptr)));
    if (!arriving) return;
    auto* state = static_cast<State*>(self);
    state->running_.with([](std::size_t& running) { --running; });
    state->none_running_.notify_all();
  }

  static void on_log(void* self, const char* format, va_list arguments) noexcept {
    char line[512];
    (void)std::vsnprintf(line, sizeof line, format, arguments);
    std::string_view text(line);
    while (text.ends_with('\n')) text.remove_suffix(1);
    static_cast<State*>(self)->log_.debug("{}", text);
  }

  static MHD_Result on_request(void* self, MHD_Connection* connection, const char*,
                               const char* method, const char*, const char* upload,
                               std::size_t* upload_size, void** request) noexcept {
    auto* arriving = static_cast<Arriving*>(*request);
    if (arriving == nullptr) return MHD_NO;
    try {
      return static_cast<State*>(self)->advance(connection, method, {upload, *upload_size},
                                                *upload_size, *arriving);
    } catch (const std::exception& error) {
      static_cast<State*>(self)->log_.error("control request: {}", error.what());
      return MHD_NO;  // closes the connection
    }
  }

  /// Called when the headers are there, for each piece of the body, and when it is whole.
  MHD_Result advance(MHD_Connection* connection, const char* method, std::string_view piece,
                     std::size_t& not_taken, Arriving& arriving) {
    if (!arriving.started) {
      arriving.started = true;
      return MHD_YES;
    }
    if (!piece.empty()) {
      not_taken = 0;
      arriving.too_large =
          arriving.too_large || piece.size() > options_.max_body - arriving.body.size();
      if (arriving.too_large) {
        arriving.body.clear();  // the rest is read and dropped, so that the client sees the answer
      } else {
        arriving.body += piece;
      }
      return MHD_YES;
    }
    if (arriving.too_large) {
      return send(connection,
                  {.status = MHD_HTTP_CONTENT_TOO_LARGE,
                   .body = R"({"error":{"code":"invalid","message":"the request's body )"
                           R"(is too large"}})"});
    }
    return send(connection, handler_.handle({.method = method_of(method),
                                             .target = std::move(arriving.target),
                                             .body = std::move(arriving.body),
                                             .user = user_of(connection)}));
  }

  ListenSocket socket_;
  Handler& handler_;
  const ServerOptions options_;
  Log log_;
  Synchronized<std::size_t> running_;  ///< requests that have arrived and are not completed
  std::condition_variable_any none_running_;
  MHD_Daemon* daemon_ = nullptr;
};

Server::Server(ListenSocket socket, Handler& handler, ServerOptions options, Log log)
    : state_(std::make_unique<State>(std::move(socket), handler, options, std::move(log))) {
}

Server::~Server() = default;

}  // namespace weightfs::control
