//go:build cgo && linux

#include "bridge.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#define CALL(t, f, args) ((args).size = sizeof(args), (t)->functions[f](&(args)))

static char *copy(const char *text, size_t size) {
	char *out = malloc(size + 1);
	if (out == NULL)
		abort();
	memcpy(out, text, size);
	out[size] = 0;
	return out;
}

table *open_plugin(const char *path, char **problem) {
	void *library = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
	table *(*get)(void) = NULL;
	if (library != NULL)
		get = (table * (*)(void)) dlsym(library, "GetPjrtApi");
	if (get == NULL) {
		const char *text = dlerror();
		if (text == NULL)
			text = "it has no function GetPjrtApi";
		*problem = copy(text, strlen(text));
		return NULL;
	}
	table *t = get();
	if (t == NULL)
		*problem = copy("it gives no interface", 21);
	return t;
}

int explain(table *t, void *error, char **message) {
	message_args text = {.error = error};
	CALL(t, ERROR_MESSAGE, text);
	*message = copy(text.message, text.message_size);
	code_args code = {.error = error};
	void *second = CALL(t, ERROR_CODE, code);
	int result = second == NULL ? code.code : 0;
	error_args gone = {.error = error};
	CALL(t, ERROR_DESTROY, gone);
	return result;
}

void destroy(table *t, int how, void *object) {
	object_args args = {.object = object};
	void *error = CALL(t, how, args);
	if (error != NULL) {
		error_args gone = {.error = error};
		CALL(t, ERROR_DESTROY, gone);
	}
}

// settle waits for an event and destroys it.
static void *settle(table *t, void *event) {
	event_args args = {.event = event};
	void *error = CALL(t, EVENT_AWAIT, args);
	destroy(t, EVENT_DESTROY, event);
	return error;
}

void *initialize(table *t) {
	initialize_args args = {0};
	return CALL(t, PLUGIN_INITIALIZE, args);
}

void *create_client(table *t, void **client, void **device, size_t *devices) {
	// Several processes share the card: none may take its memory in advance.
	named_value option = {
		.size = sizeof option, .name = "preallocate", .name_size = 11, .type = 4, .truth = false, .value_size = 1,
	};
	create_args args = {.options = &option, .num_options = 1};
	void *error = CALL(t, CLIENT_CREATE, args);
	if (error != NULL)
		return error;
	*client = args.client;
	devices_args list = {.client = args.client};
	error = CALL(t, CLIENT_DEVICES, list);
	if (error != NULL)
		return error;
	*devices = list.num_devices;
	*device = list.num_devices > 0 ? list.devices[0] : NULL;
	return NULL;
}

void *platform_version(table *t, void *client, char **version) {
	version_args args = {.client = client};
	void *error = CALL(t, CLIENT_VERSION, args);
	if (error == NULL)
		*version = copy(args.version, args.version_size);
	return error;
}

void *compile(table *t, void *client, const char *code, size_t code_size, const char *options, size_t options_size, void **executable) {
	program_text program = {.size = sizeof program, .code = code, .code_size = code_size, .format = "mlir", .format_size = 4};
	compile_args args = {.client = client, .program = &program, .options = options, .options_size = options_size};
	void *error = CALL(t, CLIENT_COMPILE, args);
	*executable = args.executable;
	return error;
}

void *serialize(table *t, void *executable, char **bytes, size_t *size) {
	executable_args inner = {.loaded = executable};
	void *error = CALL(t, LOADED_EXECUTABLE, inner);
	if (error != NULL)
		return error;
	serialize_args args = {.executable = inner.executable};
	error = CALL(t, EXECUTABLE_SERIALIZE, args);
	if (error == NULL) {
		*bytes = copy(args.bytes, args.bytes_size);
		*size = args.bytes_size;
		if (args.free_backing != NULL)
			args.free_backing(args.backing);
	}
	destroy(t, EXECUTABLE_DESTROY, inner.executable);
	return error;
}

void *deserialize(table *t, void *client, const char *bytes, size_t size, void **executable) {
	deserialize_args args = {.client = client, .bytes = bytes, .bytes_size = size};
	void *error = CALL(t, DESERIALIZE, args);
	*executable = args.executable;
	return error;
}

void *upload(table *t, void *client, void *device, const void *data, int type, const int64_t *dims, size_t num_dims, void **buffer) {
	upload_args args = {
		.client = client, .data = data, .type = type, .dims = dims, .num_dims = num_dims, .device = device,
	};
	void *error = CALL(t, CLIENT_UPLOAD, args);
	if (error != NULL)
		return error;
	*buffer = args.buffer;
	return settle(t, args.done);
}

void *download(table *t, void *buffer, void *to, size_t size) {
	download_args args = {.source = buffer, .to = to, .to_size = size};
	void *error = CALL(t, BUFFER_DOWNLOAD, args);
	if (error != NULL)
		return error;
	return settle(t, args.event);
}

void *execute(table *t, void *executable, void *device, void **arguments, size_t num_arguments, void **results) {
	int64_t kept[16];
	execute_options options = {.size = sizeof options, .kept = kept, .num_kept = num_arguments};
	for (size_t i = 0; i < num_arguments && i < 16; i++)
		kept[i] = (int64_t)i;
	void *const *argument_list = arguments;
	void **result_list = results;
	execute_args args = {
		.executable = executable, .options = &options, .arguments = &argument_list, .num_devices = 1,
		.num_arguments = num_arguments, .results = &result_list, .device = device,
	};
	return CALL(t, LOADED_EXECUTE, args);
}
