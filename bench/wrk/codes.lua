-- Has a code made for each address of a file in turn, and signs in with it as soon as it is known: URL -- KEY CLIENT FILE
local emails, codes, at, before = {}, {}, 0, ""

function init(args)
  wrk.method = "POST"
  wrk.headers["Authorization"] = "Bearer " .. args[1]
  wrk.headers["Content-Type"] = "application/json"
  before = '{"grant_type":"urn:gatehouse:oauth:grant-type:magic-auth:code","client_secret":"' .. args[1] .. '","client_id":"' .. args[2] .. '",'
  for email in io.lines(args[3]) do emails[#emails + 1] = email end
end

function request()
  local known = table.remove(codes)
  if known then return wrk.format(nil, "/user_management/authenticate", nil, before .. known .. "}") end
  at = at % #emails + 1
  return wrk.format(nil, "/user_management/magic_auth", nil, '{"email":"' .. emails[at] .. '"}')
end

function response(status, headers, body)
  if status ~= 201 then return end
  codes[#codes + 1] = '"email":"' .. body:match('"email":"([^"]+)"') .. '","code":"' .. body:match('"code":"([^"]+)"') .. '"'
end
