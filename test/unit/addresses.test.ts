import { expect, test } from "vitest";
import { isPublicHost, isPublicIp } from "../../shared/platform/addresses.ts";

test.each([
  "8.8.8.8",
  "100.63.255.255",
  "100.128.0.0",
  "172.15.255.255",
  "172.32.0.0",
  "192.0.1.0",
  "223.255.255.255",
  "2606:4700::1111",
  "2001:200::1",
  "2a00::",
  "::ffff:8.8.8.8",
  "::ffff:808:808",
  "64:ff9b::8.8.8.8",
])("%s is a public address", (ip) => {
  expect(isPublicIp(ip)).toBe(true);
});

test.each([
  ["this network", ["0.0.0.0", "0.255.255.255", "::"]],
  ["loopback", ["127.0.0.1", "127.255.255.254", "::1"]],
  ["private", ["10.0.0.1", "10.255.255.255", "172.16.0.0", "172.31.255.255", "192.168.0.1", "fc00::1", "fdff::1"]],
  ["shared by a carrier", ["100.64.0.0", "100.127.255.255"]],
  ["link-local, where clouds serve credentials", ["169.254.169.254", "fe80::1", "fe80::1%eth0", "febf::1"]],
  ["documentation", ["192.0.2.1", "198.51.100.1", "203.0.113.1", "2001:db8::1", "3fff::1"]],
  ["for measurements and assignments", ["198.18.0.1", "198.19.255.255", "192.0.0.8", "2001::1", "2001:1ff::1"]],
  ["multicast, broadcast and unassigned", ["224.0.0.1", "240.0.0.1", "255.255.255.255", "ff02::1", "4000::1"]],
  [
    "an IPv4 address within",
    ["::ffff:10.0.0.1", "::ffff:7f00:1", "64:ff9b::a9fe:a9fe", "::127.0.0.1", "2002:7f00:1::"],
  ],
  ["local NAT64", ["64:ff9b:1::808:808"]],
  ["no address", ["", "localhost", "1.2.3", "1.2.3.4.5", "999.1.1.1", "[::1]", "8.8.8.8:80"]],
])("%s is not public", (_, ips) => {
  expect(ips.filter(isPublicIp)).toEqual([]);
});

test("a host is checked by its address in any notation, or by its name", () => {
  const open = ["example.com", "EXAMPLE.com.", "8.8.8.8", "0x08080808", "2606:4700::1111", "[2606:4700::1111]"];
  expect(open.filter((host) => !isPublicHost(host))).toEqual([]);
  const names = [
    "localhost",
    "LOCALHOST.",
    "a.localhost",
    "minio",
    "nas.local",
    "metadata.google.internal",
    "x.home.arpa",
  ];
  const addresses = [
    "127.1",
    "0x7f000001",
    "2130706433",
    "0177.0.0.1",
    "127.0.0.1.",
    "[::1]",
    "::1",
    "::ffff:10.0.0.1",
  ];
  const noHosts = ["", " ", ".", "a@b.com", "a.com/b", "a.com?b", "a.com#b"];
  expect([...names, ...addresses, ...noHosts].filter(isPublicHost)).toEqual([]);
});
