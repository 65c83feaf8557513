//go:build cgo && linux

// The part of the PJRT C API (XLA's interface for plugins) that Grange uses, declared by hand. The interface only ever
// grows at the end of a structure, and each carries its size; TAIL leaves room, filled with zeros, for what later versions
// have added, so that their plugins read these as they are.
#ifndef GRANGE_PJRT_ABI_H
#define GRANGE_PJRT_ABI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HEAD size_t size; void *extension
#define TAIL void *later[8]

typedef struct { HEAD; void *error; TAIL; } error_args;
typedef struct { HEAD; const void *error; const char *message; size_t message_size; TAIL; } message_args;
typedef struct { HEAD; const void *error; int code; TAIL; } code_args;
typedef struct { HEAD; TAIL; } initialize_args;
typedef struct { HEAD; void *event; TAIL; } event_args;

typedef struct {
	HEAD;
	const char *name;
	size_t name_size;
	int type; // 3: float, 4: bool
	union { const char *text; int64_t integer; float real; bool truth; };
	size_t value_size;
} named_value;

typedef struct {
	HEAD;
	const named_value *options;
	size_t num_options;
	void *get, *get_argument, *put, *put_argument;
	void *client; // out
	void *try_get, *try_get_argument;
	TAIL;
} create_args;

typedef struct { HEAD; void *client; void *const *devices; size_t num_devices; TAIL; } devices_args;
typedef struct { HEAD; void *client; const char *version; size_t version_size; TAIL; } version_args;
typedef struct { HEAD; const char *code; size_t code_size; const char *format; size_t format_size; TAIL; } program_text;
typedef struct {
	HEAD;
	void *client;
	const program_text *program;
	const char *options;
	size_t options_size;
	void *executable; // out
	TAIL;
} compile_args;

typedef struct {
	HEAD;
	void *client;
	const void *data;
	int type;
	const int64_t *dims;
	size_t num_dims;
	const int64_t *strides;
	size_t num_strides;
	int semantics;
	void *device, *memory, *layout;
	void *done, *buffer; // out
	TAIL;
} upload_args;

typedef struct {
	HEAD;
	const void *executable;
	const char *bytes; // out
	size_t bytes_size; // out
	void *backing;
	void (*free_backing)(void *); // out
	TAIL;
} serialize_args;

typedef struct {
	HEAD;
	void *client;
	const char *bytes;
	size_t bytes_size;
	void *executable; // out
	const char *options;
	size_t options_size;
	TAIL;
} deserialize_args;

typedef struct { HEAD; void *loaded; void *executable; TAIL; } executable_args;
typedef struct { HEAD; void *object; TAIL; } object_args;

typedef struct {
	HEAD;
	void **send, **receive;
	size_t num_send, num_receive;
	int launch;
	const int64_t *kept;
	size_t num_kept;
	void *context;
	TAIL;
} execute_options;

typedef struct {
	HEAD;
	void *executable;
	execute_options *options;
	void *const *const *arguments;
	size_t num_devices, num_arguments;
	void **const *results; // in/out
	void **events;         // in/out
	void *device;
	TAIL;
} execute_args;

typedef struct { HEAD; void *source; void *layout; void *to; size_t to_size; void *event; TAIL; } download_args;

typedef void *(*function)(void *args);

// The functions by their place in the table. All of these have been there since the first version.
enum {
	ERROR_DESTROY = 0, ERROR_MESSAGE = 1, ERROR_CODE = 2, PLUGIN_INITIALIZE = 3,
	EVENT_DESTROY = 5, EVENT_AWAIT = 8,
	CLIENT_CREATE = 10, CLIENT_DESTROY = 11, CLIENT_VERSION = 14, CLIENT_DEVICES = 16, CLIENT_COMPILE = 20,
	CLIENT_UPLOAD = 22,
	EXECUTABLE_DESTROY = 40, EXECUTABLE_SERIALIZE = 49,
	LOADED_DESTROY = 50, LOADED_EXECUTABLE = 51, LOADED_EXECUTE = 55, DESERIALIZE = 56,
	BUFFER_DESTROY = 58, BUFFER_DOWNLOAD = 70,
	FUNCTIONS = 71
};

typedef struct {
	HEAD;
	struct { HEAD; int major, minor; } version;
	function functions[FUNCTIONS];
} table;

#endif
