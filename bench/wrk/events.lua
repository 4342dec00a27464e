-- Records an audit event of some 600 bytes in each organization of a file in turn, each with an idempotency key that no other request of any run has: URL -- KEY FILE RUN
local organizations, run, count = {}, "", 0
local actions = { "document.shared", "document.viewed", "member.invited", "settings.updated" }

function init(args)
  wrk.method = "POST"
  wrk.headers["Authorization"] = "Bearer " .. args[1]
  wrk.headers["Content-Type"] = "application/json"
  for id in io.lines(args[2]) do organizations[#organizations + 1] = id end
  run = args[3]
  math.randomseed(os.time())
end

local function id()
  return string.format("01KF%08X%08X%06X", math.random(0, 2147483647), math.random(0, 2147483647), count)
end

function request()
  count = count + 1
  wrk.headers["Idempotency-Key"] = run .. "-" .. count
  local body = '{"organization_id":"' .. organizations[count % #organizations + 1] .. '","event":{"action":"' .. actions[count % 4 + 1]
    .. '","occurred_at":"' .. os.date("!%Y-%m-%dT%H:%M:%S") .. string.format(".%03dZ", count % 1000)
    .. '","actor":{"id":"user_' .. id() .. '","type":"user","name":"Person ' .. count % 5000 .. '","metadata":{"role":"member"}},"targets":[{"id":"document_' .. id()
    .. '","type":"document","name":"Plan ' .. count .. '"}],"context":{"location":"192.0.2.' .. count % 256
    .. '","user_agent":"Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36"},"metadata":{"request_id":"' .. id()
    .. '","plan":"enterprise","pages":' .. count % 90 .. '}}}'
  return wrk.format(nil, nil, nil, body)
end
