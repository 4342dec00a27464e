-- Creates people in each directory of a file in turn, `ID TOKEN DOMAIN` each, under names that no other request of any run has: URL -- FILE RUN
local directories, run, count = {}, "", 0

function init(args)
  wrk.method = "POST"
  wrk.headers["Content-Type"] = "application/scim+json"
  for line in io.lines(args[1]) do
    local id, token, domain = line:match("^(%S+) (%S+) (%S+)$")
    directories[#directories + 1] = { path = "/scim/v2/" .. id .. "/Users", authorization = "Bearer " .. token, domain = domain }
  end
  run = args[2]
end

function request()
  count = count + 1
  local directory = directories[count % #directories + 1]
  local name = "person-" .. run .. "-" .. count .. "@" .. directory.domain
  wrk.headers["Authorization"] = directory.authorization
  return wrk.format(nil, directory.path, nil, '{"schemas":["urn:ietf:params:scim:schemas:core:2.0:User","urn:ietf:params:scim:schemas:extension:enterprise:2.0:User"],"userName":"'
    .. name .. '","externalId":"' .. run .. "-" .. count .. '","name":{"givenName":"Person","familyName":"Number ' .. count .. '"},"displayName":"Person Number '
    .. count .. '","title":"Engineer","emails":[{"primary":true,"type":"work","value":"' .. name
    .. '"}],"active":true,"urn:ietf:params:scim:schemas:extension:enterprise:2.0:User":{"department":"Research","employeeNumber":"' .. count .. '"}}')
end
