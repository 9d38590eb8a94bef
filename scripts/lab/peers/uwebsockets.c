/*
 * uWebSockets through its C interface, as the Python package socketify ships it compiled (there is no uWebSockets.js on
 * npm). Takes the port and the ping interval (ms, 0 for none).
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

typedef struct uws_app uws_app_t;
typedef struct uws_res uws_res_t;
typedef struct uws_req uws_req_t;
struct us_loop_t;
struct us_timer_t;
struct us_socket_t;
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

typedef void (*uws_method_handler)(uws_res_t *, uws_req_t *, void *);
typedef void (*uws_listen_handler)(struct us_listen_socket_t *, uws_app_listen_config_t, void *);

uws_app_t *uws_create_app(int ssl, struct us_socket_context_options_t options);
void uws_app_get(int ssl, uws_app_t *app, const char *pattern, uws_method_handler handler, void *data);
void uws_app_any(int ssl, uws_app_t *app, const char *pattern, uws_method_handler handler, void *data);
void uws_app_listen_with_config(int ssl, uws_app_t *app, uws_app_listen_config_t config, uws_listen_handler, void *data);
void uws_app_run(int ssl, uws_app_t *app);
void uws_res_write_status(int ssl, uws_res_t *res, const char *status, size_t length);
void uws_res_write_header(int ssl, uws_res_t *res, const char *key, size_t, const char *value, size_t);
bool uws_res_write(int ssl, uws_res_t *res, const char *text, size_t length);
void uws_res_end(int ssl, uws_res_t *res, const char *text, size_t length, bool close_connection);
void uws_res_on_aborted(int ssl, uws_res_t *res, void (*handler)(uws_res_t *, void *), void *data);
void uws_res_cork(int ssl, uws_res_t *res, void (*handler)(uws_res_t *, void *), void *data);
struct us_loop_t *uws_get_loop(void);
struct us_timer_t *us_create_timer(struct us_loop_t *loop, int fallthrough, unsigned int extra_bytes);
void us_timer_set(struct us_timer_t *timer, void (*handler)(struct us_timer_t *), int ms, int repeat_ms);
void us_socket_timeout(int ssl, struct us_socket_t *socket, unsigned int seconds);

/* The responses, and where each one stands, so that a closed one leaves in one step. */
struct place {
  size_t index;
};
static uws_res_t **streams;
static struct place **places;
static size_t count, room;

/* A stream that is silent for ten seconds would be closed. */
static void never_time_out(uws_res_t *res) {
  us_socket_timeout(0, (struct us_socket_t *)res, 0);
}

static void on_closed(uws_res_t *res, void *data) {
  struct place *place = data;
  (void)res;
  count--;
  streams[place->index] = streams[count];
  places[place->index] = places[count];
  places[place->index]->index = place->index;
  free(place);
}

static void on_get(uws_res_t *res, uws_req_t *req, void *data) {
  (void)req, (void)data;
  if (count == room) {
    room = room ? 2 * room : 1024;
    streams = realloc(streams, room * sizeof *streams);
    places = realloc(places, room * sizeof *places);
  }
  struct place *place = malloc(sizeof *place);
  place->index = count;
  streams[count] = res;
  places[count++] = place;
  uws_res_on_aborted(0, res, on_closed, place);
  uws_res_write_header(0, res, "Content-Type", 12, "text/plain", 10);
  uws_res_write(0, res, "Welcome!", 8);
  never_time_out(res);
}

static void on_other(uws_res_t *res, uws_req_t *req, void *data) {
  (void)req, (void)data;
  uws_res_write_status(0, res, "404 Not Found", 13);
  uws_res_end(0, res, "", 0, true);
}

/* Corked: one system call each. */
static void ping(uws_res_t *res, void *data) {
  (void)data;
  uws_res_write(0, res, "ping", 4);
  never_time_out(res);
}

static void on_timer(struct us_timer_t *timer) {
  (void)timer;
  for (size_t i = 0; i < count; i++) uws_res_cork(0, streams[i], ping, NULL);
}

static void on_listen(struct us_listen_socket_t *listener, uws_app_listen_config_t config, void *data) {
  (void)config, (void)data;
  if (!listener) exit(1);
}

int main(int argc, char **argv) {
  struct us_socket_context_options_t options;
  memset(&options, 0, sizeof options);
  int port = argc > 1 ? atoi(argv[1]) : 0, interval_ms = argc > 2 ? atoi(argv[2]) : 0;
  uws_app_t *app = uws_create_app(0, options);
  uws_app_get(0, app, "/", on_get, NULL);
  uws_app_any(0, app, "/*", on_other, NULL);
  if (interval_ms > 0) us_timer_set(us_create_timer(uws_get_loop(), 0, 0), on_timer, interval_ms, interval_ms);
  uws_app_listen_with_config(0, app, (uws_app_listen_config_t){.port = port, .host = "127.0.0.1"}, on_listen, NULL);
  uws_app_run(0, app);
}
