/*
 * WebSockets and plain answers of uWebSockets, through its C interface, as the Python package socketify ships it compiled. Takes the port
 * and the interval of heartbeats (ms, 0 for none), as the others do: see common.js.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct uws_app uws_app_t;
typedef struct uws_res uws_res_t;
typedef struct uws_req uws_req_t;
typedef struct uws_socket_context uws_socket_context_t;
typedef struct uws_websocket uws_websocket_t;
struct us_loop_t;
struct us_timer_t;
struct us_listen_socket_t;

struct us_socket_context_options_t {
  const char *key_file_name, *cert_file_name, *passphrase, *dh_params_file_name, *ca_file_name, *ssl_ciphers;
  int ssl_prefer_low_memory_usage;
};

typedef struct {
  int port;
  const char *host;
  int options;
} uws_app_listen_config_t;

typedef enum { TEXT = 1, PING = 9, PONG = 10 } uws_opcode_t;

typedef struct {
  int compression;
  unsigned int max_payload_length;
  unsigned short idle_timeout;
  unsigned int max_backpressure;
  bool close_on_backpressure_limit, reset_idle_timeout_on_send, send_pings_automatically;
  unsigned short max_lifetime;
  void (*upgrade)(uws_res_t *, uws_req_t *, uws_socket_context_t *, void *);
  void (*open)(uws_websocket_t *, void *);
  void (*message)(uws_websocket_t *, const char *, size_t, uws_opcode_t, void *);
  void (*drain)(uws_websocket_t *, void *);
  void (*ping)(uws_websocket_t *, const char *, size_t, void *);
  void (*pong)(uws_websocket_t *, const char *, size_t, void *);
  void (*close)(uws_websocket_t *, int, const char *, size_t, void *);
  void (*subscription)(uws_websocket_t *, const char *, size_t, int, int, void *);
} uws_socket_behavior_t;

typedef void (*uws_method_handler)(uws_res_t *, uws_req_t *, void *);
typedef void (*uws_listen_handler)(struct us_listen_socket_t *, uws_app_listen_config_t, void *);

uws_app_t *uws_create_app(int ssl, struct us_socket_context_options_t options);
void uws_app_get(int ssl, uws_app_t *app, const char *pattern, uws_method_handler handler, void *data);
void uws_app_post(int ssl, uws_app_t *app, const char *pattern, uws_method_handler handler, void *data);
void uws_app_any(int ssl, uws_app_t *app, const char *pattern, uws_method_handler handler, void *data);
void uws_app_listen_with_config(int ssl, uws_app_t *app, uws_app_listen_config_t config, uws_listen_handler, void *data);
void uws_app_run(int ssl, uws_app_t *app);
size_t uws_req_get_header(uws_req_t *req, const char *name, size_t length, const char **value);
void uws_res_write_status(int ssl, uws_res_t *res, const char *status, size_t length);
void uws_res_write_header(int ssl, uws_res_t *res, const char *key, size_t, const char *value, size_t);
void uws_res_end(int ssl, uws_res_t *res, const char *text, size_t length, bool close_connection);
void uws_res_on_aborted(int ssl, uws_res_t *res, void (*handler)(uws_res_t *, void *), void *data);
void uws_res_on_data(int ssl, uws_res_t *, void (*handler)(uws_res_t *, const char *, size_t, bool, void *), void *data);
void uws_res_upgrade(int ssl, uws_res_t *, void *data, const char *key, size_t, const char *protocol, size_t, const char *extensions,
                     size_t, uws_socket_context_t *);
void uws_ws(int ssl, uws_app_t *app, const char *pattern, uws_socket_behavior_t behavior, void *data);
void *uws_ws_get_user_data(int ssl, uws_websocket_t *ws);
int uws_ws_send(int ssl, uws_websocket_t *ws, const char *message, size_t length, uws_opcode_t opcode);
struct us_loop_t *uws_get_loop(void);
struct us_timer_t *us_create_timer(struct us_loop_t *loop, int fallthrough, unsigned int extra_bytes);
void us_timer_set(struct us_timer_t *timer, void (*handler)(struct us_timer_t *), int ms, int repeat_ms);

static const char ANSWER[] = "Hello world\n";
static const int ASK_EVERY = 4;

/* The clients, and where each one stands, so that a closed one leaves in one step. */
struct place {
  size_t index;
};
static uws_websocket_t **clients;
static struct place **places;
static size_t count, room;

static void on_upgrade(uws_res_t *res, uws_req_t *req, uws_socket_context_t *context, void *data) {
  (void)data;
  const char *key = "";
  size_t length = uws_req_get_header(req, "sec-websocket-key", 17, &key);
  uws_res_upgrade(0, res, malloc(sizeof(struct place)), key, length, "", 0, "", 0, context);
}

static void on_open(uws_websocket_t *ws, void *data) {
  (void)data;
  if (count == room) {
    room = room ? 2 * room : 1024;
    clients = realloc(clients, room * sizeof *clients);
    places = realloc(places, room * sizeof *places);
  }
  struct place *place = uws_ws_get_user_data(0, ws);
  place->index = count;
  clients[count] = ws;
  places[count++] = place;
  uws_ws_send(0, ws, "Welcome!", 8, TEXT);
}

static void on_close(uws_websocket_t *ws, int code, const char *message, size_t length, void *data) {
  (void)code, (void)message, (void)length, (void)data;
  struct place *place = uws_ws_get_user_data(0, ws);
  count--;
  clients[place->index] = clients[count];
  places[place->index] = places[count];
  places[place->index]->index = place->index;
  free(place);
}

static void send_all(const char *text, size_t length, uws_opcode_t opcode) {
  for (size_t i = 0; i < count; i++) uws_ws_send(0, clients[i], text, length, opcode);
}

/* A message comes in one piece: it is short. */
static void on_body(uws_res_t *res, const char *chunk, size_t length, bool is_end, void *data) {
  (void)data;
  if (length > 0) send_all(chunk, length, TEXT);
  if (!is_end) return;
  uws_res_write_status(0, res, "202 Accepted", 12);
  uws_res_end(0, res, "", 0, false);
}

static void on_aborted(uws_res_t *res, void *data) {
  (void)res, (void)data;
}

static void on_publish(uws_res_t *res, uws_req_t *req, void *data) {
  (void)req, (void)data;
  uws_res_on_aborted(0, res, on_aborted, NULL);
  uws_res_on_data(0, res, on_body, NULL);
}

static void on_get(uws_res_t *res, uws_req_t *req, void *data) {
  (void)req, (void)data;
  uws_res_write_header(0, res, "Content-Type", 12, "text/plain; charset=utf-8", 25);
  uws_res_end(0, res, ANSWER, sizeof ANSWER - 1, false);
}

static void on_other(uws_res_t *res, uws_req_t *req, void *data) {
  (void)req, (void)data;
  uws_res_write_status(0, res, "404 Not Found", 13);
  uws_res_end(0, res, "", 0, false);
}

static void on_timer(struct us_timer_t *timer) {
  static int beats;
  (void)timer;
  send_all("", 0, ++beats % ASK_EVERY == 0 ? PING : PONG);
}

static void on_listen(struct us_listen_socket_t *listener, uws_app_listen_config_t config, void *data) {
  (void)config, (void)data;
  if (!listener) exit(1);
  puts("listening");
  fflush(stdout);
}

int main(int argc, char **argv) {
  struct us_socket_context_options_t options;
  uws_socket_behavior_t behavior;
  memset(&options, 0, sizeof options);
  memset(&behavior, 0, sizeof behavior);
  behavior.max_payload_length = 65536;
  behavior.max_backpressure = 1 << 20;
  behavior.upgrade = on_upgrade;
  behavior.open = on_open;
  behavior.close = on_close;
  int port = argc > 1 ? atoi(argv[1]) : 0, interval_ms = argc > 2 ? atoi(argv[2]) : 0;
  uws_app_t *app = uws_create_app(0, options);
  uws_ws(0, app, "/", behavior, NULL);
  uws_app_get(0, app, "/bench", on_get, NULL);
  uws_app_post(0, app, "/publish", on_publish, NULL);
  uws_app_any(0, app, "/*", on_other, NULL);
  if (interval_ms > 0) us_timer_set(us_create_timer(uws_get_loop(), 0, 0), on_timer, interval_ms, interval_ms);
  uws_app_listen_with_config(0, app, (uws_app_listen_config_t){.port = port, .host = "127.0.0.1"}, on_listen, NULL);
  uws_app_run(0, app);
}
