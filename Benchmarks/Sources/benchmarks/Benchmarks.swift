import CMeasure
import EngineBenchmarks

/// Measures what the package promises and says whether it keeps it.
@main enum Benchmarks {
    static let others = [
        Benchmark("tool", ToolStart.measure),
        Benchmark("sip-messages", SIPMessages.measure),
        Benchmark("sip-calls", SIPCalls.measure),
        Benchmark("sip-memory", SIPMemory.measure),
        Benchmark("sip-growth", SIPGrowth.measure),
        Benchmark("sip-tool", SIPToolRuns.measure),
        Benchmark("agents", AgentMessages.measure),
        Benchmark("agent-connections", AgentConnections.measure),
        Benchmark("agent-calls", AgentCalls.measure),
        Benchmark("sipp", SIPpCalls.measure),
        Benchmark("secured", SecuredSound.measure),
        Benchmark("messaging", Messaging.measure),
        Benchmark("cores", Cores.measure),
        Benchmark("storm", CoreStorm.measure),
        Benchmark("call-storm", CallStorm.measure),
        Benchmark("texts", PushedTexts.measure),
        Benchmark("pushes", PushedCalls.measure),
        Benchmark("roaming", Roaming.measure),
        Benchmark("wake", Wakes.measure),
    ]

    static func main() async {
        if let directory = MessagingPeer.directory {
            measure_end_with_parent()
            await MessagingPeer.run(in: directory)
        }
        if let (role, directory) = CorePeer.assignment {
            measure_end_with_parent()
            await CorePeer.run(as: role, in: directory)
        }
        AgentPeer.runIfAsked()
        await Benchmark.main("benchmarks", Benchmark.ofEngine + others, runsTool: true)
    }
}
