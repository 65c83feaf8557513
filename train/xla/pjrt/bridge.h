//go:build cgo && linux

#ifndef GRANGE_PJRT_BRIDGE_H
#define GRANGE_PJRT_BRIDGE_H

#include "abi.h"

// Functions that return a void * return an error of the plugin, or NULL. What a function gives out through a char ** is
// the caller's to free.

// open_plugin loads a plugin; on failure the table is NULL and *problem says why.
table *open_plugin(const char *path, char **problem);
// explain returns the code of an error and its text, and destroys it.
int explain(table *t, void *error, char **message);
void *initialize(table *t);
void *create_client(table *t, void **client, void **device, size_t *devices);
void *platform_version(table *t, void *client, char **version);
void *compile(table *t, void *client, const char *code, size_t code_size, const char *options, size_t options_size, void **executable);
void *serialize(table *t, void *executable, char **bytes, size_t *size);
void *deserialize(table *t, void *client, const char *bytes, size_t size, void **executable);
void *upload(table *t, void *client, void *device, const void *data, int type, const int64_t *dims, size_t num_dims, void **buffer);
void *download(table *t, void *buffer, void *to, size_t size);
void *execute(table *t, void *executable, void *device, void **arguments, size_t num_arguments, void **results);
void destroy(table *t, int how, void *object);

#endif
