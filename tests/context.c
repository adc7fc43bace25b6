#include "fixture.h"

lattn_status fixture_create_context(const lattn_context_params *params, lattn_context **context)
{
    return lattn_context_create(params, context);
}
