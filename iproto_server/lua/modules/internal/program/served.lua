-- Files that `iproto-server serve` runs: the server may work in another folder than theirs.
local served = {}

-- Let `require` find modules in the folder of a file, from any working directory.
function served.search_in(folder)
    package.path = ('%s/?.lua;%s/?/init.lua;%s'):format(folder, folder, package.path)
end

return served
