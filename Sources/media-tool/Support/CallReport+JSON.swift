import MediaEngine

extension CallReport {
    /// The report with the keys that scripts rely on; what is not known is `null`.
    var json: JSONValue {
        [
            "codec": .string(codec),
            "mode": .string(mode.rawValue),
            "seconds": .number(seconds),
            "legs": .array(legs.map(\.json)),
            "ticks": [
                "count": .integer(ticks.count),
                "late": .integer(ticks.late),
                "p99LatenessMs": .number(ticks.p99LatenessMs),
                "lostEvents": .integer(ticks.lostEvents),
            ],
            "cards": .array(cards.map(\.json)),
            "routeChanges": .array(routeChanges.map(\.json)),
        ]
    }
}

extension CardReport {
    /// The card with the keys that scripts rely on.
    var json: JSONValue {
        [
            "direction": .string(direction.rawValue),
            "name": .string(name),
            "latencyMs": .number(latencyMs),
            "ppm": JSONValue(ppm),
            "correctionPPM": .number(correctionPPM),
            "xruns": .integer(xruns),
            "lostMs": .number(lostMs),
            "insertedMs": .number(insertedMs),
            "stalls": .integer(stalls),
            "suspends": .integer(suspends),
            "shortages": .integer(shortages),
            "disappearances": .integer(disappearances),
            "reopenings": .integer(reopenings),
            "withoutCardMs": .number(withoutCardMs),
        ]
    }
}

extension RouteChange {
    /// The change with the keys that scripts rely on.
    var json: JSONValue {
        [
            "direction": .string(direction.rawValue),
            "from": .string(from),
            "to": .string(to),
            "cause": .string(cause.rawValue),
            "seconds": .number(seconds),
            "latencyBeforeMs": .number(latencyBeforeMs),
            "latencyAfterMs": JSONValue(latencyAfterMs),
        ]
    }
}

extension LegReport {
    /// The leg with the keys that scripts rely on.
    var json: JSONValue {
        [
            "name": .string(name),
            "sent": [
                "packets": .integer(sent.packets), "bytes": .integer(sent.bytes),
                "unreachable": .integer(sent.unreachable),
            ],
            "received": [
                "packets": .integer(received.packets),
                "lost": .integer(received.lost),
                "late": .integer(received.late),
                "duplicate": .integer(received.duplicate),
                "reordered": .integer(received.reordered),
                "concealedMs": .number(received.concealedMs),
                "fecRecovered": .integer(received.fecRecovered),
                "redundant": .integer(received.redundant),
                "codecChanges": .integer(received.codecChanges),
                "comfortNoise": .integer(received.comfortNoise),
                "discarded": .integer(received.discarded),
                "rejected": .integer(received.rejected),
                "refused": [
                    "otherAddress": .integer(received.refused.otherAddress),
                    "unnamedHost": .integer(received.refused.unnamedHost),
                    "formerSource": .integer(received.refused.formerSource),
                    "otherControl": .integer(received.refused.otherControl),
                    "otherProtocol": .integer(received.refused.otherProtocol),
                ],
                "socketDrops": .integer(received.socketDrops),
            ],
            "jitterMs": .number(jitterMs),
            "playoutDelayMs": .number(playoutDelayMs),
            "targetDelayMs": JSONValue(targetDelayMs),
            "stretchedMs": .number(stretchedMs),
            "mouthToEarMs": JSONValue(mouthToEarMs),
            "dtmf": .string(dtmf),
            "lossProtection": [
                "mode": .string(lossProtection.mode.rawValue),
                "reason": .string(lossProtection.reason),
                "changes": .integer(lossProtection.changes),
            ],
            "rtcp": [
                "roundTripMs": JSONValue(rtcp.roundTripMs),
                "fractionLost": JSONValue(rtcp.fractionLost),
                "lossRuns": rtcp.lossRuns.map { runs in
                    ["count": .integer(runs.count), "mean": .number(runs.mean), "longest": .integer(runs.longest)]
                } ?? .null,
            ],
            "sentLevel": .number(sentLevel),
            "heardLevel": .number(heardLevel),
            "quality": quality.json,
        ]
    }
}

extension LegReport.Quality {
    /// The estimate with the keys that scripts rely on.
    var json: JSONValue {
        [
            "rFactor": JSONValue(rFactor),
            "scale": scale.map { .string($0.rawValue) } ?? .null,
            "mosListening": JSONValue(mosListening),
            "mosConversational": JSONValue(mosConversational),
            "lossPercent": .number(lossPercent),
            "discardPercent": .number(discardPercent),
            "interruptedMs": .number(interruptedMs),
            "burstLossPercent": .number(burstLossPercent),
            "gapLossPercent": .number(gapLossPercent),
            "burstMs": .number(burstMs),
            "gapMs": .number(gapMs),
            "oneWayDelayMs": JSONValue(oneWayDelayMs),
            "implausibleReports": .integer(implausibleReports),
            "remote": remote?.json ?? .null,
        ]
    }
}

extension LegReport.Remote {
    /// The other side's account with the keys that scripts rely on.
    var json: JSONValue {
        [
            "rFactor": rFactor.map { .integer($0) } ?? .null,
            "mosListening": JSONValue(mosListening),
            "mosConversational": JSONValue(mosConversational),
            "lossPercent": .number(lossPercent),
            "discardPercent": .number(discardPercent),
            "burstLossPercent": .number(burstLossPercent),
            "gapLossPercent": .number(gapLossPercent),
            "burstMs": .integer(burstMs),
            "gapMs": .integer(gapMs),
            "roundTripMs": roundTripMs.map { .integer($0) } ?? .null,
            "endSystemDelayMs": .integer(endSystemDelayMs),
            "bufferDelayMs": .integer(bufferDelayMs),
            "signalLevel": signalLevel.map { .integer($0) } ?? .null,
            "noiseLevel": noiseLevel.map { .integer($0) } ?? .null,
        ]
    }
}
