#include "commands.h"
#include "options.h"
#include "report.h"
#include "table.h"

static const struct table_column columns[] = {
    {"index", "index", TABLE_RIGHT},     {"backend", "backend", TABLE_LEFT},
    {"ordinal", "ordinal", TABLE_RIGHT}, {"kind", "kind", TABLE_LEFT},
    {"name", "name", TABLE_LEFT},        {"arch", "arch", TABLE_LEFT},
    {"memory", "memory", TABLE_RIGHT},   {"compute_units", "units", TABLE_RIGHT},
    {"usable", "usable", TABLE_LEFT},    {"driver", "driver", TABLE_LEFT},
    {"reason", "reason", TABLE_NOTE},    {NULL, NULL, TABLE_JSON},
};

static const char *kind_name(lattn_device_kind kind)
{
    if (kind == LATTN_DEVICE_GPU)
        return "gpu";
    return kind == LATTN_DEVICE_CPU ? "cpu" : "other";
}

static void add_device(struct table *table, int32_t index, const lattn_device_info *info)
{
    table_integer(table, index);
    table_text(table, info->backend);
    table_integer(table, info->ordinal);
    table_text(table, kind_name(info->kind));
    table_text(table, info->name);
    table_text(table, info->arch);
    table_bytes(table, info->memory);
    table_integer(table, info->compute_units);
    table_flag(table, info->status == LATTN_OK);
    table_text(table, info->driver);
    table_text(table, info->status == LATTN_OK ? "" : info->reason);
}

int command_devices(int argc, char **argv)
{
    struct options options;
    int end;
    if (!options_parse(argc, argv, "devices", OPTION_JSON, &options, &end))
        return end;
    if (options.file_count > 0)
        return complain(EXIT_USAGE, "devices: %s is one argument too many", options.files[0]);
    lattn_context *context;
    lattn_status status = lattn_context_create(NULL, &context);
    if (status != LATTN_OK)
        return complain_library(status, "devices");
    struct table *table = table_new(columns);
    for (int32_t i = 0; i < lattn_device_count(context) && status == LATTN_OK; i++) {
        lattn_device_info info = LATTN_DEVICE_INFO_INIT;
        status = lattn_device_info_get(context, i, &info);
        if (status == LATTN_OK)
            add_device(table, i, &info);
    }
    end = EXIT_DONE;
    if (status != LATTN_OK)
        end = complain_library(status, "devices");
    else if (!table_print(table, options.json))
        end = EXIT_FAILED;
    table_free(table);
    lattn_context_destroy(context);
    return end;
}
