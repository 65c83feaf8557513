// A plugin that does nothing but fail, in the manner that FAILS says: 0 not at all, or with that code of an error when the
// device is opened. MAJOR is its version of the interface, DEVICES how many devices it has.
#include <string.h>
#include "abi.h"

static char problem[] = TEXT;

static void *message(void *p) {
	message_args *args = p;
	args->message = problem;
	args->message_size = strlen(problem);
	return NULL;
}

static void *code(void *p) {
	((code_args *)p)->code = FAILS;
	return NULL;
}

static void *nothing(void *p) { return NULL; }
static void *create(void *p) { return FAILS ? problem : NULL; }

static void *devices(void *p) {
	static void *all[] = {problem};
	devices_args *args = p;
	args->devices = all;
	args->num_devices = DEVICES;
	return NULL;
}

static void *version(void *p) {
	version_args *args = p;
	args->version = "stub";
	args->version_size = 4;
	return NULL;
}

static void *upload(void *p) { return problem; }

table *GetPjrtApi(void) {
	static table t = {.size = SIZE, .version = {.major = MAJOR, .minor = 1}};
	for (int i = 0; i < FUNCTIONS; i++)
		t.functions[i] = nothing;
	t.functions[ERROR_MESSAGE] = message;
	t.functions[ERROR_CODE] = code;
	t.functions[CLIENT_CREATE] = create;
	t.functions[CLIENT_DEVICES] = devices;
	t.functions[CLIENT_VERSION] = version;
	t.functions[CLIENT_UPLOAD] = upload;
	return &t;
}
