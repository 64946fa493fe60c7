// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "net/transfer.hpp"

#include "base/error.hpp"
#include "net/redirect_target.hpp"

#include <fcntl.h>
#include <algorithm>
#include <array>
#include <new>
#include <string>
#include <string_view>
#include <utility>

namespace weightfs::net {

namespace {

/// More of a redirect's body is not worth the connection that reading it would save.
constexpr std::uint64_t kMaxDiscarded = 64 << 10;
/// curl reads this much at once; below it a fast transfer is bound by system calls.
constexpr long kReceiveBuffer = 256L << 10;

template <class Value>
void set(const EasyHandle& easy, CURLoption option, Value value) {
  const CURLcode code = curl_easy_setopt(easy.get(), option, value);
  if (code == CURLE_OUT_OF_MEMORY) throw std::bad_alloc();
  if (code != CURLE_OK) {
    throw Error(Errc::kInternal, std::string("curl option: ") + curl_easy_strerror(code));
  }
}

/// Child processes must not inherit connections.
int close_on_exec(void* /*user*/, curl_socket_t socket, curlsocktype /*purpose*/) noexcept {
  return ::fcntl(socket, F_SETFD, FD_CLOEXEC) == 0 ? CURL_SOCKOPT_OK : CURL_SOCKOPT_ERROR;
}

void append(HeaderList& list, const std::string& line) {
  curl_slist* head = curl_slist_append(list.get(), line.c_str());
  if (head == nullptr) throw std::bad_alloc();
  if (!list) list.reset(head);
}

std::string failure_text(CURLcode code, std::string_view text) {
  if (text.empty()) return curl_easy_strerror(code);
  // curl repeats the URL of the proxy, and with it the password in there.
  if (text.find("nsupported proxy") != std::string_view::npos) {
    return "the proxy that the environment names has a URL that curl does not take";
  }
  return std::string(text);
}

/// Whether the server ended TLS because of who we are, or of how we speak (RFC 8446, 6.2). With TLS
/// 1.3 it says so only after the handshake, to curl an error in reading like any other.
bool refuses_us(std::string_view text) {
  constexpr std::array<std::string_view, 5> kAlerts = {"certificate", "unknown ca", "access denied",
                                                       "handshake failure", "protocol version"};
  const std::size_t alert = text.find(" alert ");
  return alert != std::string_view::npos &&
         std::ranges::any_of(kAlerts, [&](std::string_view known) {
           return text.find(known, alert) != std::string_view::npos;
         });
}

}  // namespace

Transfer::Transfer(const HttpClientOptions& options, const Request& request, const Hop& hop,
                   const OnHead& on_head, const HttpClient::OnBody& on_body, std::stop_token stop,
                   LiveCounters& counters)
    : options_(options),
      request_(request),
      hop_(hop),
      on_head_(on_head),
      on_body_(on_body),
      stop_(std::move(stop)),
      counters_(counters),
      easy_(curl_easy_init()) {
  if (!easy_) throw std::bad_alloc();
  set_options();
  set_method();
  set_security();
  set_headers();
  set_callbacks();
}

void Transfer::set_options() {
  set(easy_, CURLOPT_URL, hop_.url.text().c_str());
  set(easy_, CURLOPT_PATH_AS_IS, 1L);
  set(easy_, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  set(easy_, CURLOPT_USERAGENT, options_.user_agent.c_str());
  set(easy_, CURLOPT_BUFFERSIZE, kReceiveBuffer);
  set(easy_, CURLOPT_TCP_NODELAY, 1L);
  set(easy_, CURLOPT_TCP_KEEPALIVE, 1L);
  set(easy_, CURLOPT_TCP_KEEPIDLE, 30L);
  set(easy_, CURLOPT_TCP_KEEPINTVL, 15L);
  set(easy_, CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(options_.connect_timeout.count()));
  set(easy_, CURLOPT_NOSIGNAL, 1L);
  // A name server that does not answer must not hold up a stop: the resolver thread is left behind.
  set(easy_, CURLOPT_QUICK_EXIT, 1L);
  if (!options_.unix_socket.empty()) {
    set(easy_, CURLOPT_UNIX_SOCKET_PATH, options_.unix_socket.c_str());
  }
  if (!options_.unix_socket.empty() || hop_.url.origin().is_loopback()) {
    set(easy_, CURLOPT_PROXY, "");
  }
}

void Transfer::set_method() {
  switch (request_.method) {
    case Method::kGet:
      return;
    case Method::kHead:
      set(easy_, CURLOPT_NOBODY, 1L);
      return;
    case Method::kPost:
      break;
    case Method::kPut:
      set(easy_, CURLOPT_CUSTOMREQUEST, "PUT");
      break;
    case Method::kDelete:
      set(easy_, CURLOPT_CUSTOMREQUEST, "DELETE");
      break;
  }
  set(easy_, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request_.body.size()));
  set(easy_, CURLOPT_POSTFIELDS, request_.body.c_str());
}

void Transfer::set_security() {
  set(easy_, CURLOPT_PROTOCOLS_STR, "http,https");
  set(easy_, CURLOPT_FOLLOWLOCATION, 0L);
  set(easy_, CURLOPT_DISALLOW_USERNAME_IN_URL, 1L);
  set(easy_, CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
  set(easy_, CURLOPT_SSL_VERIFYPEER, 1L);
  set(easy_, CURLOPT_SSL_VERIFYHOST, 2L);
  const TlsIdentity& tls = hop_.tls;
  const std::string& authorities = tls.ca_bundle.empty() ? options_.ca_bundle : tls.ca_bundle;
  if (!authorities.empty()) set(easy_, CURLOPT_CAINFO, authorities.c_str());
  if (tls.certificate.empty()) return;
  set(easy_, CURLOPT_SSLCERT, tls.certificate.c_str());
  set(easy_, CURLOPT_SSLKEY, (tls.key.empty() ? tls.certificate : tls.key).c_str());
  // Else a key that is encrypted makes OpenSSL ask for its passphrase on the terminal.
  set(easy_, CURLOPT_KEYPASSWD, "");
}

void Transfer::set_headers() {
  append(header_list_, "Accept-Encoding: identity");
  if (request_.range) {
    append(header_list_, "Range: bytes=" + std::to_string(request_.range->first) + "-" +
                             std::to_string(request_.range->second));
  }
  if (!request_.body.empty()) append(header_list_, "Content-Type: " + request_.content_type);
  append(header_list_, "Expect:");
  for (const auto& [name, value] : hop_.headers) append(header_list_, name + ": " + value);
  set(easy_, CURLOPT_HTTPHEADER, header_list_.get());
}

void Transfer::set_callbacks() {
  using Write = size_t (*)(char*, size_t, size_t, void*) noexcept;
  const Write on_header = [](char* data, size_t, size_t size, void* self) noexcept -> size_t {
    return static_cast<Transfer*>(self)->take_header({data, size}) ? size : CURL_WRITEFUNC_ERROR;
  };
  const Write on_body = [](char* data, size_t, size_t size, void* self) noexcept -> size_t {
    return static_cast<Transfer*>(self)->take_body(std::as_bytes(std::span(data, size)))
               ? size
               : CURL_WRITEFUNC_ERROR;
  };
  using Ready = int (*)(void*, char*, char*, int, int) noexcept;
  const Ready on_ready = [](void* self, char* address, char*, int port, int) noexcept -> int {
    return static_cast<Transfer*>(self)->take_connection(address, port) ? CURL_PREREQFUNC_OK
                                                                        : CURL_PREREQFUNC_ABORT;
  };
  set(easy_, CURLOPT_HEADERFUNCTION, on_header);
  set(easy_, CURLOPT_HEADERDATA, this);
  set(easy_, CURLOPT_WRITEFUNCTION, on_body);
  set(easy_, CURLOPT_WRITEDATA, this);
  set(easy_, CURLOPT_PREREQFUNCTION, on_ready);
  set(easy_, CURLOPT_PREREQDATA, this);
  set(easy_, CURLOPT_SOCKOPTFUNCTION, &close_on_exec);
  set(easy_, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
  set(easy_, CURLOPT_ERRORBUFFER, error_text_);
}

ResponseHead Transfer::run(CURLM* multi) {
  started_ = last_progress_ = std::chrono::steady_clock::now();
  if (curl_multi_add_handle(multi, easy_.get()) != CURLM_OK) throw std::bad_alloc();
  // Taking a handle out before it is done closes its connection.
  const auto remove = [multi](CURL* easy) noexcept { curl_multi_remove_handle(multi, easy); };
  const std::unique_ptr<CURL, decltype(remove)> added(easy_.get(), remove);
  ++counters_.requests;
  try {
    drive(multi);
  } catch (...) {
    long opened = 0;
    curl_easy_getinfo(easy_.get(), CURLINFO_NUM_CONNECTS, &opened);
    counters_.connections += static_cast<std::uint64_t>(opened);
    throw;
  }
  finish(result_of(multi));
  return std::move(parser_.head());
}

void Transfer::drive(CURLM* multi) {
  // Ends a poll at once; destroyed before `multi` can serve another transfer.
  const std::stop_callback wake(stop_, [multi]() noexcept { curl_multi_wakeup(multi); });
  for (;;) {
    if (stop_.stop_requested()) throw Error(Errc::kCancelled, "the request was cancelled");
    int running = 0;
    if (curl_multi_perform(multi, &running) != CURLM_OK) {
      throw Error(Errc::kInternal, "curl_multi_perform failed");
    }
    if (running == 0) return;
    const std::chrono::milliseconds patience = time_to_stall();
    if (curl_multi_poll(multi, nullptr, 0, static_cast<int>(patience.count()), nullptr) !=
        CURLM_OK) {
      throw Error(Errc::kInternal, "curl_multi_poll failed");
    }
  }
}

std::chrono::milliseconds Transfer::time_to_stall() {
  using std::chrono::milliseconds;
  const auto now = std::chrono::steady_clock::now();
  curl_off_t uploaded = 0;
  curl_easy_getinfo(easy_.get(), CURLINFO_SIZE_UPLOAD_T, &uploaded);
  if (std::exchange(uploaded_, uploaded) != uploaded) last_progress_ = now;
  const milliseconds timeout = request_.stall_timeout.value_or(options_.stall_timeout);
  // Until the connection stands, curl's own connect timeout is the first to end it.
  const auto deadline =
      connected_ ? last_progress_ + timeout : started_ + options_.connect_timeout + timeout;
  const auto left = std::chrono::ceil<milliseconds>(deadline - now);
  if (left <= milliseconds(0)) {
    throw TransientError(Errc::kTimedOut, hop_.url.origin().authority() + " sent nothing for " +
                                              std::to_string(timeout.count()) + " ms");
  }
  return std::min(left, milliseconds(60'000));
}

CURLcode Transfer::result_of(CURLM* multi) const {
  int queued = 0;
  while (const CURLMsg* message = curl_multi_info_read(multi, &queued)) {
    if (message->msg == CURLMSG_DONE && message->easy_handle == easy_.get()) {
      return message->data.result;
    }
  }
  throw Error(Errc::kInternal, "curl ended a transfer without its result");
}

void Transfer::finish(CURLcode code) {
  long opened = 0;
  curl_easy_getinfo(easy_.get(), CURLINFO_NUM_CONNECTS, &opened);
  counters_.connections += static_cast<std::uint64_t>(opened);
  if (thrown_) std::rethrow_exception(thrown_);
  if (discarded_enough_) return;
  if (code == CURLE_WRITE_ERROR && stop_.stop_requested()) {
    throw Error(Errc::kCancelled, "the request was cancelled");
  }
  if (code != CURLE_OK) throw_failure(code);
  if (!parser_.complete()) {
    throw TransientError(Errc::kUnavailable,
                         hop_.url.origin().authority() + " did not finish its answer");
  }
  curl_socket_t socket = CURL_SOCKET_BAD;
  reusable_ = curl_easy_getinfo(easy_.get(), CURLINFO_ACTIVESOCKET, &socket) == CURLE_OK &&
              socket != CURL_SOCKET_BAD;
}

void Transfer::throw_failure(CURLcode code) {
  const std::string message =
      hop_.url.origin().authority() + ": " + failure_text(code, error_text_);
  const auto is_one_of = [code](auto... codes) { return ((code == codes) || ...); };
  if (code == CURLE_OUT_OF_MEMORY) throw std::bad_alloc();
  if (code == CURLE_OPERATION_TIMEDOUT) throw TransientError(Errc::kTimedOut, message);
  if (is_one_of(CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_CERTPROBLEM, CURLE_SSL_CIPHER,
                CURLE_SSL_ISSUER_ERROR, CURLE_SSL_PINNEDPUBKEYNOTMATCH,
                CURLE_SSL_INVALIDCERTSTATUS) ||
      refuses_us(error_text_)) {
    throw Error(Errc::kPermission, message);
  }
  if (is_one_of(CURLE_SSL_CACERT_BADFILE, CURLE_URL_MALFORMAT, CURLE_LOGIN_DENIED)) {
    throw Error(Errc::kInvalid, message);
  }
  // With TLS 1.3 a server that closes at once may take the alert that says why along.
  const bool may_be_refused = !hop_.tls.certificate.empty() && parser_.head().status == 0;
  throw TransientError(Errc::kUnavailable,
                       may_be_refused ? message + " (if it does not take the client certificate " +
                                            hop_.tls.certificate + ", this is how it says so)"
                                      : message);
}

bool Transfer::take_connection(const char* address, int port) noexcept {
  connected_ = true;
  last_progress_ = std::chrono::steady_clock::now();
  if (!hop_.sent_by || address == nullptr || may_lead_to(*hop_.sent_by, address)) return true;
  // Nobody's redirect led here but our own settings: it is a proxy that was connected to.
  if (port != hop_.url.origin().port) return true;
  try {
    throw Error(Errc::kInvalid, hop_.sent_by->authority() + " sends to " +
                                    hop_.url.origin().authority() + ", which is " + address +
                                    ": refused");
  } catch (...) {
    thrown_ = std::current_exception();
  }
  return false;
}

bool Transfer::take_header(std::string_view line) noexcept {
  last_progress_ = std::chrono::steady_clock::now();
  try {
    if (!parser_.take_line(line)) return true;
    parser_.head().effective_url = hop_.url.text();
    body_ = on_head_(parser_.head());
    // Nobody knows where it ends (RFC 9112, 6.3), and some who say nothing never end it.
    const ResponseHead& head = parser_.head();
    discarded_enough_ = body_ == Body::kDiscard && !head.header("content-length") &&
                        !head.header("transfer-encoding");
    if (discarded_enough_) return false;
  } catch (...) {
    thrown_ = std::current_exception();
    return false;
  }
  last_progress_ = std::chrono::steady_clock::now();
  return true;
}

bool Transfer::take_body(std::span<const std::byte> data) noexcept {
  counters_.bytes += data.size();
  if (stop_.stop_requested()) return false;
  if (body_ == Body::kDiscard) {
    discarded_ += data.size();
    discarded_enough_ = discarded_ > kMaxDiscarded;
    last_progress_ = std::chrono::steady_clock::now();
    return !discarded_enough_;
  }
  try {
    on_body_(data);
  } catch (...) {
    thrown_ = std::current_exception();
    return false;
  }
  // Afterwards: a slow sink is not a stalled server.
  last_progress_ = std::chrono::steady_clock::now();
  return true;
}

}  // namespace weightfs::net
