-- An early state of the tutorial's application, with a console.
require('strict').on()
fiber = require('fiber')
box.cfg{listen = '127.0.0.1:0'}
box.schema.user.grant('guest', 'super', nil, nil, {if_not_exists = true})
queue = require('queue')
require('console').start()
os.exit()
