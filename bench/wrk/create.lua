-- Creates organizations, each with an idempotency key that no other request of any run has: URL -- KEY RUN
local run, count = "", 0

function init(args)
  wrk.method = "POST"
  wrk.headers["Authorization"] = "Bearer " .. args[1]
  wrk.headers["Content-Type"] = "application/json"
  run = args[2]
end

function request()
  count = count + 1
  wrk.headers["Idempotency-Key"] = run .. "-" .. count
  return wrk.format(nil, nil, nil, '{"name":"Bench Organization ' .. count .. '"}')
end
