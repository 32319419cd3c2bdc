-- Errors of the operating system as values, which functions return.
local errors = require('internal.box.values.error')

-- Make an error with the number of the system's, which is the last one of the fiber.
return function(message, number) return errors.new_error(0, message, 'SystemError', {errno = number}) end
