-- The table `box` with its values: tuples, errors and NULL.
local serializer = require('internal.serial.serializer')

return {
    NULL = serializer.NULL,
    error = require('internal.box.values.error').public,
    tuple = require('internal.box.values.tuple').public,
}
