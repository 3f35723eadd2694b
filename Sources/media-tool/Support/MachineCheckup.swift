internal import Glibc
import MediaEngine

/// What `doctor` looks at, apart from cards.
enum MachineCheckup {
    /// Rights for real-time scheduling, and how punctual ticks are.
    static func scheduling() async throws -> [Finding] {
        let idle = IdleTarget()
        let driver = TimerDriver(idle, name: "doctor")
        try driver.start()
        _ = await Interruption.wait(.seconds(1))
        let scheduling = driver.scheduling
        driver.stop()
        let statistics = driver.statistics
        return [rights(scheduling), punctuality(statistics)]
    }

    private final class IdleTarget: TickTarget {
        var isIdle: Bool { false }
        func tick(at now: MediaTime, lateness: Duration) {}
        func obey() {}
    }

    private static func rights(_ scheduling: SchedulingResult?) -> Finding {
        var limit = rlimit()
        let hasLimit = getrlimit(__rlimit_resource_t(__RLIMIT_RTPRIO.rawValue), &limit) == 0
        let highest = !hasLimit ? "unknown" : limit.rlim_cur > 1000 ? "unlimited" : "\(limit.rlim_cur)"
        let area = "real-time scheduling"
        switch scheduling {
        case .realTime(let priority):
            return Finding(
                area: area,
                status: .ok,
                finding: "SCHED_FIFO, priority \(priority), is granted (rtprio limit \(highest))."
            )
        case .refused(let reason):
            return Finding(
                area: area,
                status: .warning,
                finding: "SCHED_FIFO is refused: \(reason) (rtprio limit \(highest)). Under load ticks come late.",
                remedy: "Add a line `@audio - rtprio 20` in /etc/security/limits.d and your user to the group audio, "
                    + "or start with `ulimit -r 20`, with the capability CAP_SYS_NICE, or in a container with "
                    + "--ulimit rtprio=20 --cap-add SYS_NICE."
            )
        case .normal, nil:
            return Finding(area: area, status: .ok, finding: "SCHED_FIFO was not asked for (rtprio limit \(highest)).")
        }
    }

    private static func punctuality(_ statistics: TickStatistics) -> Finding {
        func rounded(_ duration: Duration) -> String { "\((duration.milliseconds * 100).rounded() / 100) ms" }
        let (usual, worst) = (statistics.lateness.quantile(0.99), statistics.lateness.maximum)
        let finding =
            "\(statistics.count) ticks of 10 ms, 99 % within \(rounded(usual)), the latest by \(rounded(worst)), "
            + "\(statistics.skippedCount) left out."
        guard statistics.count > 0 else {
            return Finding(
                area: "timer",
                status: .failure,
                finding: "No tick ran in a second.",
                remedy: "Free the machine: its processors are taken by others."
            )
        }
        let isGood = usual <= .milliseconds(3) && statistics.skippedCount == 0
        return Finding(
            area: "timer",
            status: isGood ? .ok : .warning,
            finding: finding,
            remedy: isGood ? nil : "Allow real-time scheduling, end what loads the machine, or give it more processors."
        )
    }

    /// Every codec codes and decodes a packet; what is missing is told with its remedy.
    static func codecs(_ registry: PluginRegistry) -> [Finding] {
        var (good, bad): ([String], [Finding]) = ([], [])
        for entry in registry.codecs where entry.isEnabled {
            do throws(CodecError) {
                try codeOnePacket(entry.codec)
                good.append(entry.description.rtpmap)
            } catch {
                bad.append(
                    Finding(
                        area: "codecs",
                        status: .failure,
                        finding: "\(entry.description.rtpmap) does not work: \(error.message)",
                        remedy: "Reinstall its library, or use another codec."
                    )
                )
            }
        }
        let missing = registry.missing.map(\.name).joined(separator: ", ")
        let works = Finding(
            area: "codecs",
            status: good.isEmpty ? .failure : .ok,
            finding: "\(good.joined(separator: ", ")) work.",
            remedy: good.isEmpty ? "Build the tool again: no codec is registered." : nil
        )
        guard !missing.isEmpty else { return bad + [works] }
        let absent = Finding(
            area: "codecs",
            status: .ok,
            finding: "Not there: \(missing).",
            remedy: "Where you need one, `media-tool codecs` says how to get it."
        )
        return bad + [works, absent]
    }

    private static func codeOnePacket(_ codec: any AudioCodec) throws(CodecError) {
        var configuration = EncoderConfiguration()
        configuration.channelCount = codec.description.format.channelCount
        let encoder = try codec.makeEncoder(configuration)
        let decoder = try codec.makeDecoder(channelCount: configuration.channelCount)
        let silence = [Int16](repeating: 0, count: encoder.frameCount * encoder.format.channelCount)
        var packet = [UInt8](repeating: 0, count: PacketBatch.maximumPayloadByteCount)
        var target = packet.mutableSpan
        let byteCount = encoder.encode(silence.span, into: &target)
        guard byteCount > 0 else { return }
        var decoded = [Int16](repeating: 0, count: silence.count * 2)
        var samples = decoded.mutableSpan
        let frameCount = decoder.decode(packet.span.extracting(0..<byteCount), into: &samples)
        guard frameCount == encoder.frameCount else {
            throw CodecError(.libraryFailure, "\(encoder.frameCount) frames went in, \(frameCount) came out.")
        }
    }

    /// A UDP port is to be had, and datagrams come back on the loopback interface.
    static func network() async -> Finding {
        do throws(NetworkError) {
            _ = try UDPSocket(bind: SocketAddress(ipv4: 0, port: 0))
            let (left, right) = (try UDPSocket(bind: .loopback(port: 0)), try UDPSocket(bind: .loopback(port: 0)))
            let question: [UInt8] = Array("doctor".utf8)
            let sent = MonotonicClock.current
            left.send(question.span, to: right.localAddress, at: sent)
            var answer = [UInt8](repeating: 0, count: 64)
            while MonotonicClock.current - sent < .seconds(1) {
                var buffer = answer.mutableSpan
                if let datagram = right.receive(into: &buffer, at: MonotonicClock.current) {
                    let isWhole = datagram.byteCount == question.count && datagram.source == left.localAddress
                    guard isWhole, Array(answer[..<question.count]) == question else { continue }
                    return Finding(
                        area: "network",
                        status: .ok,
                        finding: "UDP ports can be bound; a datagram came back on 127.0.0.1."
                    )
                }
                _ = await Interruption.wait(.milliseconds(1))
            }
            return Finding(
                area: "network",
                status: .failure,
                finding: "A datagram to 127.0.0.1 did not arrive within 1 s.",
                remedy: "Bring the loopback interface up (ip link set lo up), and let the firewall pass UDP on it."
            )
        } catch {
            return Finding(
                area: "network",
                status: .failure,
                finding: "No UDP port can be bound. \(error)",
                remedy: "Allow sockets in the sandbox or container, and free ports."
            )
        }
    }
}
