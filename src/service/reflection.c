/* Server reflection, v1 and v1alpha: the same messages under two names, answered from the embedded descriptors. */
#include "service/service_private.h"

#include <string.h>

enum { FILES_MAX = 8, SERVICES_MAX = 16, STATUS_NOT_FOUND = 5 };
/* Memory of one question with its answer. A stream takes many: the call's arena would fill up with them. */
enum { QUESTION_BYTES_MAX = 256 << 10 };

/* Everything that one response points to. */
struct answer {
    const struct service *service;
    Grpc__Reflection__V1__ServerReflectionResponse response;
    Grpc__Reflection__V1__FileDescriptorResponse files;
    Grpc__Reflection__V1__ListServiceResponse list;
    Grpc__Reflection__V1__ExtensionNumberResponse extensions;
    Grpc__Reflection__V1__ErrorResponse error;
    ProtobufCBinaryData file_bytes[FILES_MAX];
    Grpc__Reflection__V1__ServiceResponse services[SERVICES_MAX], *service_rows[SERVICES_MAX];
    const struct proto_file *included[FILES_MAX];
};

/* The file and what it imports, each once. */
static void include_file(struct answer *a, const struct proto_file *file)
{
    for (size_t i = 0; i < a->files.n_file_descriptor_proto; i++)
        if (a->included[i] == file)
            return;
    if (a->files.n_file_descriptor_proto == FILES_MAX)
        return;
    size_t at = a->files.n_file_descriptor_proto++;
    a->included[at] = file;
    a->file_bytes[at] = (ProtobufCBinaryData){.len = file->len, .data = (uint8_t *)(uintptr_t)file->bytes};
    for (const char *const *import = file->imports; *import; import++) {
        const struct proto_file *imported = proto_find_file(*import);
        if (imported)
            include_file(a, imported);
    }
}

static void answer_error(struct answer *a, const char *text)
{
    grpc__reflection__v1__error_response__init(&a->error);
    a->error.error_code = STATUS_NOT_FOUND;
    a->error.error_message = (char *)(uintptr_t)text;
    a->response.message_response_case =
        GRPC__REFLECTION__V1__SERVER_REFLECTION_RESPONSE__MESSAGE_RESPONSE_ERROR_RESPONSE;
    a->response.error_response = &a->error;
}

static void answer_file(struct answer *a, const struct proto_file *file)
{
    if (!file) {
        answer_error(a, "not found");
        return;
    }
    grpc__reflection__v1__file_descriptor_response__init(&a->files);
    a->files.file_descriptor_proto = a->file_bytes;
    include_file(a, file);
    a->response.message_response_case =
        GRPC__REFLECTION__V1__SERVER_REFLECTION_RESPONSE__MESSAGE_RESPONSE_FILE_DESCRIPTOR_RESPONSE;
    a->response.file_descriptor_response = &a->files;
}

/* Which services there are depends on the program: a hub does not serve what agents do. */
static bool is_served(const struct service *s, const char *name)
{
    for (size_t i = 0; i < s->n_methods; i++)
        if (str_has_prefix(str_of(s->methods[i].path + 1), name) && s->methods[i].path[1 + strlen(name)] == '/')
            return true;
    return false;
}

static void add_service(struct answer *a, const char *name)
{
    if (a->list.n_service == SERVICES_MAX)
        return;
    size_t at = a->list.n_service++;
    grpc__reflection__v1__service_response__init(&a->services[at]);
    a->services[at].name = (char *)(uintptr_t)name;
    a->service_rows[at] = &a->services[at];
}

static void answer_services(struct answer *a)
{
    grpc__reflection__v1__list_service_response__init(&a->list);
    for (size_t i = 0; i < proto_file_count; i++)
        for (const char *const *name = proto_files[i].services; *name; name++)
            if (is_served(a->service, *name))
                add_service(a, *name);
    a->list.service = a->service_rows;
    a->response.message_response_case =
        GRPC__REFLECTION__V1__SERVER_REFLECTION_RESPONSE__MESSAGE_RESPONSE_LIST_SERVICES_RESPONSE;
    a->response.list_services_response = &a->list;
}

/* There are no extensions: of a type that exists, the list is empty. */
static void answer_extensions(struct answer *a, char *type)
{
    if (!proto_find_symbol(type)) {
        answer_error(a, "not found");
        return;
    }
    grpc__reflection__v1__extension_number_response__init(&a->extensions);
    a->extensions.base_type_name = type;
    a->response.message_response_case =
        GRPC__REFLECTION__V1__SERVER_REFLECTION_RESPONSE__MESSAGE_RESPONSE_ALL_EXTENSION_NUMBERS_RESPONSE;
    a->response.all_extension_numbers_response = &a->extensions;
}

#define ASKS(what) GRPC__REFLECTION__V1__SERVER_REFLECTION_REQUEST__MESSAGE_REQUEST_##what

/* Returns 0, or -1 where nothing that we know was asked. An if-chain: protobuf-c's generated enum holds a value that
 * only forces its size, which no switch should name. */
static int answer(struct answer *a, Grpc__Reflection__V1__ServerReflectionRequest *asked)
{
    grpc__reflection__v1__server_reflection_response__init(&a->response);
    a->response.valid_host = asked->host;
    a->response.original_request = asked;
    int what = (int)asked->message_request_case;
    if (what == ASKS(FILE_BY_FILENAME))
        answer_file(a, proto_find_file(asked->file_by_filename));
    else if (what == ASKS(FILE_CONTAINING_SYMBOL))
        answer_file(a, proto_find_symbol(asked->file_containing_symbol));
    else if (what == ASKS(FILE_CONTAINING_EXTENSION))
        answer_error(a, "not found");
    else if (what == ASKS(ALL_EXTENSION_NUMBERS_OF_TYPE))
        answer_extensions(a, asked->all_extension_numbers_of_type);
    else if (what == ASKS(LIST_SERVICES))
        answer_services(a);
    else
        return -1;
    return 0;
}

static void message(struct rpc_call *call, struct str request, void *context)
{
    ARENA_AUTO struct arena arena;
    arena_init(&arena, QUESTION_BYTES_MAX);
    Grpc__Reflection__V1__ServerReflectionRequest *asked =
        service_decode(call, &arena, request, &grpc__reflection__v1__server_reflection_request__descriptor);
    struct answer a = {.service = context};
    if (!asked)
        return;
    if (answer(&a, asked) < 0)
        rpc_call_finish(call, ERR_INVALID_ARGUMENT, "the request asks for nothing that reflection has");
    else if (service_send(call, &a.response.base) < 0)
        rpc_call_finish(call, ERR_RESOURCE_EXHAUSTED, "too many answers of this stream were not read");
}

void service_add_reflection(struct service *s)
{
    static const struct rpc_method methods[] = {
        {.path = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
         .is_client_streaming = true,
         .is_server_streaming = true,
         .message = message},
        {.path = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
         .is_client_streaming = true,
         .is_server_streaming = true,
         .message = message},
    };
    for (size_t i = 0; i < ARRAY_LEN(methods); i++)
        service_add_method(s, &methods[i]);
}
