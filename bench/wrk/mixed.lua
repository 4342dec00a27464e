-- What a day looks like, at a steady pace: of 20 requests 14 read one, 2 list, 2 create and 2 rename an organization: URL -- KEY FILE RUN
local paths, run, count = {}, "", 0
local pause = 5

function init(args)
  wrk.headers["Authorization"] = "Bearer " .. args[1]
  wrk.headers["Content-Type"] = "application/json"
  for path in io.lines(args[2]) do paths[#paths + 1] = path end
  run = args[3]
end

function delay()
  return pause
end

function request()
  count = count + 1
  local turn, path = count % 20, paths[count % #paths + 1]
  wrk.headers["Idempotency-Key"] = nil
  if turn < 14 then return wrk.format("GET", path) end
  if turn < 16 then return wrk.format("GET", "/organizations?limit=20") end
  wrk.headers["Idempotency-Key"] = run .. "-" .. count
  if turn < 18 then return wrk.format("POST", "/organizations", nil, '{"name":"Mixed ' .. count .. '"}') end
  return wrk.format("PUT", path, nil, '{"name":"Renamed ' .. count .. '"}')
end
